ALTER TABLE `request_log` ADD `conversation` integer;--> statement-breakpoint
ALTER TABLE `request_log` ADD `cache_loss` text;