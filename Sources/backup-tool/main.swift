import BackupKit
import CArchive
import CCrypto
import CSQLite
import CZstd
import Glibc

print(String(cString: archive_version_string()), String(cString: sqlite3_libversion()), ZSTD_versionNumber())
