#!/usr/bin/env python3
"""Writes an event log like Ollie's: make-events.py COUNT FILE. The same count always gives the same bytes."""
import random
import sys

TYPES = ["eten", "drinken", "plassen", "poepen", "slapen", "ontwaken", "uitlaten", "tuin", "training", "bench"]
NOTES = ["", "rustig", "veel energie", "na het eten", "korte ronde", "in de regen \u2614", "met \u201eFenna\u201d"]


def main():
    count, path = int(sys.argv[1]), sys.argv[2]
    chance = random.Random(20260214)
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        for number in range(count):
            bits = chance.getrandbits(128)
            text = f"{bits:032x}"
            name = f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"
            minute = number * 1576800 // count
            day, rest = divmod(minute, 1440)
            month, day = day // 28 % 12 + 1, day % 28 + 1
            year = 2023 + minute // (1440 * 336)
            stamp = f"{year}-{month:02}-{day:02}T{rest // 60:02}:{rest % 60:02}"
            kind = TYPES[bits % len(TYPES)]
            note = NOTES[bits % len(NOTES)]
            place = "buiten" if bits & 1 else "binnen"
            out.write(
                f'{{"id":"{name}","time":"{stamp}:00+01:00","type":"{kind}","location":"{place}",'
                f'"created_at":"{stamp}:30Z","note":"{note}","who":"Fenna","duration_min":{bits % 90},"x{bits % 7}":true}}\n'
            )


main()
