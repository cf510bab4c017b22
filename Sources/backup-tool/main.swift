import BackupKit
import Glibc

Process.keepFreedMemory()
exit(Tool.run())
