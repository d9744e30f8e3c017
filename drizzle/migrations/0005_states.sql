-- Triggers and functions: 36985c7778d786f3
CREATE TABLE `states` (
	`process` text NOT NULL,
	`kind` text NOT NULL,
	`object` text NOT NULL,
	`since` integer NOT NULL,
	`until` integer,
	`seen_at` integer NOT NULL,
	`what` text NOT NULL,
	`count` integer,
	`silenced_until` integer,
	`silenced_why` text,
	`silenced_by` text,
	`told` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`process`, `kind`, `object`, `since`)
);
--> statement-breakpoint
CREATE TABLE `notices` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`created_at` integer NOT NULL,
	`body` text NOT NULL,
	`tries` integer NOT NULL,
	`next_at` integer
);
