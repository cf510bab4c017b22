import BackupKit
