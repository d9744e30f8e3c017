CREATE TABLE `admissions` (
	`key_id` integer NOT NULL,
	`instance` text NOT NULL,
	`number` integer NOT NULL,
	`tokens` integer NOT NULL,
	PRIMARY KEY(`key_id`, `instance`, `number`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `former_secrets` (
	`key` text PRIMARY KEY NOT NULL,
	`key_id` integer NOT NULL,
	`valid_until` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `former_secrets_key` ON `former_secrets` (`key_id`);--> statement-breakpoint
CREATE TABLE `instances` (
	`id` text PRIMARY KEY NOT NULL,
	`beat` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `key_endings` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`key_id` integer NOT NULL,
	`ended_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `key_refusals` (
	`day` integer NOT NULL,
	`key_id` integer NOT NULL,
	`requests` integer NOT NULL,
	PRIMARY KEY(`day`, `key_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `key_seconds` (
	`key_id` integer NOT NULL,
	`second` integer NOT NULL,
	`requests` integer NOT NULL,
	`tokens` integer NOT NULL,
	PRIMARY KEY(`key_id`, `second`)
) WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `keys` ADD `expires_at` integer;--> statement-breakpoint
ALTER TABLE `keys` ADD `rules` text;--> statement-breakpoint
ALTER TABLE `keys` ADD `owner` text;--> statement-breakpoint
ALTER TABLE `keys` ADD `note` text;--> statement-breakpoint
ALTER TABLE `keys` ADD `tags` text;