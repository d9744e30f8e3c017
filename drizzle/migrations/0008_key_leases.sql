CREATE TABLE `key_leases` (
	`key_id` integer NOT NULL,
	`instance` text NOT NULL,
	`version` integer NOT NULL,
	`places` integer NOT NULL,
	`tokens` integer NOT NULL,
	PRIMARY KEY(`key_id`, `instance`)
);
--> statement-breakpoint
CREATE TABLE `lease_seconds` (
	`key_id` integer NOT NULL,
	`second` integer NOT NULL,
	`writer` text NOT NULL,
	`requests` integer NOT NULL,
	`tokens` integer NOT NULL,
	PRIMARY KEY(`key_id`, `second`, `writer`)
);
