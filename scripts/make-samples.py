#!/usr/bin/env python3
"""Writes those parts of samples/ that no text editor should: the PDFs, the Latin-1 file, and imbib's manifest.

The same bytes every time. With --check nothing is written, and the exit code says whether all is as it should be.
"""

import base64
import json
import pathlib
import plistlib
import sys

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
IMBIB = "imbib-backup-2026-03-08"
BDSK_PATH = "Attachments/Fenwick 2019 - Checksums that prove nothing.pdf"

PDFS = {
    # Named by a Bdsk-File-1 field.
    "library/" + BDSK_PATH: ["Checksums That Prove Nothing", "XOR and its friends", "Swap two blocks: the sum stays."],
    # Named by a JabRef file field.
    "library/Attachments/ibarra-lund-2021.pdf": ["Old or New, Never Half", "A proof by pulling the plug"],
    # Named by nobody, but its name starts with a cite key.
    "library/Attachments/Halloran2003 back cover.pdf": ["Twenty Years in a Drawer", "The back cover, scanned"],
    # Named by nobody at all.
    "library/Attachments/scan0042.pdf": ["Untitled", "Somebody scanned this and forgot why."],
    IMBIB + "/Attachments/Vale 2023.pdf": ["Drills, Not Promises", "Restore it, or you do not have it."],
}

LATIN1 = """\
% A file from 1999: Latin-1 and CRLF

@string{verlag = "M\u00fcller & S\u00f6hne"}

@book{Grosz1999,
  author    = {Gro\u00df, J\u00fcrgen and Lef\u00e8vre, Ren\u00e9},
  title     = {\u00dcber das \u00d6ffnen alter Dateien},
  publisher = verlag,
  year      = 1999,
  note      = {90\u00b0 gedreht, \u00a7 12}
}

@misc{Nunez1997,
  author = {Nu\u00f1ez, I\u00f1aki},
  title  = {\u00bfD\u00f3nde est\u00e1 mi disquete?},
  year   = 1997
}
"""


def pdf(lines):
    """A PDF of one page with the lines on it, by the book: header, five objects, cross-reference table, trailer."""
    text = ["BT", "/F1 20 Tf", "72 720 Td", "28 TL"]
    for index, line in enumerate(lines):
        if index == 1:
            text.append("/F1 12 Tf")
        escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        text.append(f"({escaped}) Tj T*")
    stream = "\n".join(text + ["ET"]).encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    # The comment of four high bytes tells transfer programs that this is no text.
    out = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        out += b"%010d 00000 n \n" % offset
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return out


def xor_fold(data):
    """imbib's checksum: byte i goes into place i mod 32."""
    sums = bytearray(32)
    for index, byte in enumerate(data):
        sums[index % 32] ^= byte
    return sums.hex()


def imbib_manifest(files):
    listed = dict(files)
    for name in ("library.bib", "notes.json", "settings.json"):
        listed[name] = (SAMPLES / IMBIB / name).read_bytes()
    return json.dumps(
        {
            "version": 1,
            # 2026-03-08T09:30:00Z, in seconds since 2001-01-01T00:00:00Z.
            "createdAt": 794655000,
            "appVersion": "1.4.2",
            "schemaVersion": 110,
            "publicationCount": listed["library.bib"].count(b"\n@"),
            "attachmentCount": len(files),
            "fileChecksums": {path: xor_fold(data) for path, data in sorted(listed.items())},
        },
        indent=2,
    ).encode() + b"\n"


def main():
    wanted = {path: pdf(lines) for path, lines in PDFS.items()}
    wanted["library/latin1.bib"] = LATIN1.replace("\n", "\r\n").encode("latin-1")
    attachments = {p[len(IMBIB) + 1 :]: data for p, data in wanted.items() if p.startswith(IMBIB)}
    wanted[IMBIB + "/manifest.json"] = imbib_manifest(attachments)

    bdsk = base64.b64encode(plistlib.dumps({"relativePath": BDSK_PATH}, fmt=plistlib.FMT_BINARY)).decode()
    if bdsk not in (SAMPLES / "library/references.bib").read_text("utf-8"):
        sys.exit(f"samples/library/references.bib: Bdsk-File-1 should be {{{bdsk}}}")

    stale = [path for path, data in wanted.items() if not is_equal(SAMPLES / path, data)]
    if "--check" in sys.argv[1:]:
        sys.exit("\n".join(f"samples/{path} is not what the script writes" for path in stale) or 0)
    for path in stale:
        (SAMPLES / path).parent.mkdir(parents=True, exist_ok=True)
        (SAMPLES / path).write_bytes(wanted[path])
        print(f"wrote samples/{path}")


def is_equal(path, data):
    return path.is_file() and path.read_bytes() == data


if __name__ == "__main__":
    main()
