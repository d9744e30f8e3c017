-- Triggers and functions: cad02e48aacaf7e1
ALTER TABLE `request_log` ADD `message` text;