-- The rows of `usage_model_day` by month, whoever writes or deletes them.

DROP TRIGGER IF EXISTS `usage_model_month_insert`;
CREATE TRIGGER `usage_model_month_insert` AFTER INSERT ON `usage_model_day` BEGIN
	INSERT INTO `usage_model_month` (`month`, `key_id`, `model`, `team_id`, `user_id`, `request_count`, `input_tokens`, `output_tokens`, `cached_input_tokens`, `reasoning_tokens`, `cached_beside_input_tokens`)
		VALUES (unixepoch(new.`day` * 86400, 'unixepoch', 'start of month') / 86400, new.`key_id`, new.`model`, new.`team_id`, new.`user_id`, new.`request_count`, new.`input_tokens`, new.`output_tokens`, new.`cached_input_tokens`, new.`reasoning_tokens`, new.`cached_beside_input_tokens`)
		ON CONFLICT (`month`, `key_id`, `model`, `team_id`, `user_id`) DO UPDATE SET
			`request_count` = `request_count` + excluded.`request_count`,
			`input_tokens` = `input_tokens` + excluded.`input_tokens`,
			`output_tokens` = `output_tokens` + excluded.`output_tokens`,
			`cached_input_tokens` = `cached_input_tokens` + excluded.`cached_input_tokens`,
			`reasoning_tokens` = `reasoning_tokens` + excluded.`reasoning_tokens`,
			`cached_beside_input_tokens` = `cached_beside_input_tokens` + excluded.`cached_beside_input_tokens`;
END;

DROP TRIGGER IF EXISTS `usage_model_month_update`;
CREATE TRIGGER `usage_model_month_update` AFTER UPDATE ON `usage_model_day` BEGIN
	UPDATE `usage_model_month` SET
			`request_count` = `request_count` + new.`request_count` - old.`request_count`,
			`input_tokens` = `input_tokens` + new.`input_tokens` - old.`input_tokens`,
			`output_tokens` = `output_tokens` + new.`output_tokens` - old.`output_tokens`,
			`cached_input_tokens` = `cached_input_tokens` + new.`cached_input_tokens` - old.`cached_input_tokens`,
			`reasoning_tokens` = `reasoning_tokens` + new.`reasoning_tokens` - old.`reasoning_tokens`,
			`cached_beside_input_tokens` = `cached_beside_input_tokens` + new.`cached_beside_input_tokens` - old.`cached_beside_input_tokens`
		WHERE `month` = unixepoch(new.`day` * 86400, 'unixepoch', 'start of month') / 86400 AND `key_id` = new.`key_id` AND `model` = new.`model` AND `team_id` = new.`team_id` AND `user_id` = new.`user_id`;
END;

DROP TRIGGER IF EXISTS `usage_model_month_delete`;
CREATE TRIGGER `usage_model_month_delete` AFTER DELETE ON `usage_model_day` BEGIN
	UPDATE `usage_model_month` SET
			`request_count` = `request_count` - old.`request_count`,
			`input_tokens` = `input_tokens` - old.`input_tokens`,
			`output_tokens` = `output_tokens` - old.`output_tokens`,
			`cached_input_tokens` = `cached_input_tokens` - old.`cached_input_tokens`,
			`reasoning_tokens` = `reasoning_tokens` - old.`reasoning_tokens`,
			`cached_beside_input_tokens` = `cached_beside_input_tokens` - old.`cached_beside_input_tokens`
		WHERE `month` = unixepoch(old.`day` * 86400, 'unixepoch', 'start of month') / 86400 AND `key_id` = old.`key_id` AND `model` = old.`model` AND `team_id` = old.`team_id` AND `user_id` = old.`user_id`;
	DELETE FROM `usage_model_month`
		WHERE `month` = unixepoch(old.`day` * 86400, 'unixepoch', 'start of month') / 86400 AND `key_id` = old.`key_id` AND `model` = old.`model` AND `team_id` = old.`team_id` AND `user_id` = old.`user_id`
			AND (`request_count`, `input_tokens`, `output_tokens`, `cached_input_tokens`, `reasoning_tokens`, `cached_beside_input_tokens`) = (0, 0, 0, 0, 0, 0);
END;
