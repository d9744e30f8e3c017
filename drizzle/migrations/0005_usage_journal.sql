CREATE TABLE `usage_journal` (
	`id` integer PRIMARY KEY NOT NULL,
	`ledger` text NOT NULL,
	`flush` integer NOT NULL,
	`usage` text NOT NULL
);
