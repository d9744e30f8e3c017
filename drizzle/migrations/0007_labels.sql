-- Triggers and functions: 36985c7778d786f3
CREATE TABLE `key_labels` (
	`key_id` integer NOT NULL,
	`from_day` integer NOT NULL,
	`owner` text,
	`tags` text,
	PRIMARY KEY(`key_id`, `from_day`)
);
