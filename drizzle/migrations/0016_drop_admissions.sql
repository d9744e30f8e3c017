DROP TABLE `admissions`;
--> statement-breakpoint
DROP TABLE `key_seconds`;
--> statement-breakpoint
-- Ordered by the primary key: each of their rows is written several times a second.
CREATE TABLE `__new_key_leases` (
	`key_id` integer NOT NULL,
	`instance` text NOT NULL,
	`version` integer NOT NULL,
	`places` integer NOT NULL,
	`tokens` integer NOT NULL,
	PRIMARY KEY(`key_id`, `instance`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_key_leases` SELECT * FROM `key_leases`;
--> statement-breakpoint
DROP TABLE `key_leases`;
--> statement-breakpoint
ALTER TABLE `__new_key_leases` RENAME TO `key_leases`;
--> statement-breakpoint
CREATE TABLE `__new_lease_seconds` (
	`key_id` integer NOT NULL,
	`second` integer NOT NULL,
	`writer` text NOT NULL,
	`requests` integer NOT NULL,
	`tokens` integer NOT NULL,
	PRIMARY KEY(`key_id`, `second`, `writer`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_lease_seconds` SELECT * FROM `lease_seconds`;
--> statement-breakpoint
DROP TABLE `lease_seconds`;
--> statement-breakpoint
ALTER TABLE `__new_lease_seconds` RENAME TO `lease_seconds`;
