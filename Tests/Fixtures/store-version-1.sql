CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('created_at','2026-11-21T06:35:43.858Z');
INSERT INTO meta VALUES('schema_version','120');
INSERT INTO meta VALUES('store_id','44e782305b16c091554ecc06af4b5bf6');
CREATE TABLE counter (value INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES(7);
CREATE TABLE record (
    change INTEGER PRIMARY KEY, zone TEXT NOT NULL, name TEXT, type TEXT NOT NULL, local_id TEXT NOT NULL,
    fields TEXT NOT NULL, field_times TEXT, created_at INTEGER NOT NULL, modified_at INTEGER NOT NULL,
    device_id TEXT, schema_version INTEGER NOT NULL, local_only INTEGER NOT NULL DEFAULT 0,
    deleted_at INTEGER) STRICT;
INSERT INTO record VALUES(1,'OllieEvents',NULL,'PuppyEvent','E1','{"id":"E1","time":"2026-02-14T15:00:00+01:00","type":"eten"}',NULL,1771077600000,1771077600000,NULL,120,0,NULL);
INSERT INTO record VALUES(5,'OllieEvents',NULL,'PuppyEvent','E2','{}',NULL,1795242943901,1795242943901,NULL,120,0,1795242943901);
INSERT INTO record VALUES(6,'OllieEvents',NULL,'PuppyEvent','E3','{}',NULL,1795242943921,1795242943921,NULL,120,0,1795242943921);
INSERT INTO record VALUES(7,'OllieEvents','local:E3','PuppyEvent','E3','{"id":"E3","time":"2026-02-14T17:00:00+01:00","type":"slapen"}','{"id":1771084800000,"time":1771084800000,"type":1771084800000}',1771084800000,1795242943921,NULL,120,1,NULL);
CREATE TABLE asset (path TEXT PRIMARY KEY, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
    local_only INTEGER NOT NULL DEFAULT 0, modified_ns INTEGER NOT NULL, change INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
INSERT INTO asset VALUES('Attachments/hi.pdf',3,'98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4',0,1795242943805332211,4);
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL, modified_at INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
CREATE TABLE conflict (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL,
    existing TEXT NOT NULL, incoming TEXT NOT NULL, detected_at INTEGER NOT NULL, batch INTEGER) STRICT;
CREATE TABLE batch (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, source TEXT NOT NULL,
    started_at INTEGER NOT NULL, first_change INTEGER NOT NULL, last_change INTEGER NOT NULL,
    summary TEXT NOT NULL, undone_at INTEGER) STRICT;
INSERT INTO batch VALUES(1,'import','2026-02-14.jsonl a',1795242943865,1,4,'{"added":3,"updated":0,"removed":0,"attachments":1,"settings":0}',NULL);
CREATE TABLE batch_record (batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE, after INTEGER,
    change INTEGER NOT NULL, zone TEXT NOT NULL, name TEXT, type TEXT NOT NULL, local_id TEXT NOT NULL,
    fields TEXT NOT NULL, field_times TEXT, created_at INTEGER NOT NULL, modified_at INTEGER NOT NULL,
    device_id TEXT, schema_version INTEGER NOT NULL, local_only INTEGER NOT NULL, deleted_at INTEGER) STRICT;
CREATE TABLE batch_added (change INTEGER PRIMARY KEY, edited INTEGER NOT NULL,
    batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE) STRICT;
INSERT INTO batch_added VALUES(5,1,1);
INSERT INTO batch_added VALUES(6,1,1);
CREATE TABLE batch_asset (batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE, path TEXT NOT NULL,
    size INTEGER, sha256 TEXT, local_only INTEGER, modified_ns INTEGER, kept TEXT,
    PRIMARY KEY (batch, path)) STRICT, WITHOUT ROWID;
INSERT INTO batch_asset VALUES(1,'Attachments/hi.pdf',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE batch_setting (batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE, key TEXT NOT NULL,
    value TEXT, modified_at INTEGER, PRIMARY KEY (batch, key)) STRICT, WITHOUT ROWID;
CREATE TABLE removed (change INTEGER PRIMARY KEY, zone TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
    local_id TEXT NOT NULL) STRICT;
CREATE INDEX record_by_local_id ON record (local_id);
CREATE UNIQUE INDEX record_by_name ON record (name, zone) WHERE name IS NOT NULL;
CREATE INDEX record_by_type ON record (type) WHERE type <> 'PuppyEvent';
CREATE VIEW records AS SELECT zone, ifnull(name, local_id) AS record_name, type, local_id, fields,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created,
    strftime('%Y-%m-%dT%H:%M:%fZ', modified_at / 1000.0, 'unixepoch') AS modified,
    device_id, schema_version, local_only, deleted_at IS NOT NULL AS deleted FROM record;
CREATE INDEX batch_record_by_batch ON batch_record (batch);
CREATE INDEX batch_record_by_after ON batch_record (after);
