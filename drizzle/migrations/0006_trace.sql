-- Triggers and functions: 36985c7778d786f3
ALTER TABLE `request_log` ADD `trace_id` text;