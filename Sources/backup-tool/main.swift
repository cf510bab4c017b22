import BackupKit
import Glibc

ProcessMemory.keepFreedMemory()
exit(Tool.run())
