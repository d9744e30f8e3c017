-- The rows of "usage_model_day" by month, whoever writes or deletes them.

-- The first day of a day's month. Both are counted since the epoch.
CREATE OR REPLACE FUNCTION "tollgate_month_of"(day bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
	SELECT date_trunc('month', (date '1970-01-01' + day::integer)::timestamp)::date - date '1970-01-01'
$$;

CREATE OR REPLACE FUNCTION "tollgate_insert_model_months"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO "usage_model_month" AS kept ("month", "key_id", "model", "team_id", "user_id", "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens")
	SELECT tollgate_month_of("day"), "key_id", "model", "team_id", "user_id", sum("request_count"), sum("input_tokens"), sum("output_tokens"), sum("cached_input_tokens"), sum("reasoning_tokens"), sum("cached_beside_input_tokens")
	FROM added GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
	ON CONFLICT ("month", "key_id", "model", "team_id", "user_id") DO UPDATE SET
		"request_count" = kept."request_count" + excluded."request_count",
		"input_tokens" = kept."input_tokens" + excluded."input_tokens",
		"output_tokens" = kept."output_tokens" + excluded."output_tokens",
		"cached_input_tokens" = kept."cached_input_tokens" + excluded."cached_input_tokens",
		"reasoning_tokens" = kept."reasoning_tokens" + excluded."reasoning_tokens",
		"cached_beside_input_tokens" = kept."cached_beside_input_tokens" + excluded."cached_beside_input_tokens";
	RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION "tollgate_update_model_months"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO "usage_model_month" AS kept ("month", "key_id", "model", "team_id", "user_id", "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens")
	SELECT tollgate_month_of("day"), "key_id", "model", "team_id", "user_id", sum("request_count"), sum("input_tokens"), sum("output_tokens"), sum("cached_input_tokens"), sum("reasoning_tokens"), sum("cached_beside_input_tokens")
	FROM (
		SELECT "day", "key_id", "model", "team_id", "user_id", "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens" FROM added
		UNION ALL SELECT "day", "key_id", "model", "team_id", "user_id", -"request_count", -"input_tokens", -"output_tokens", -"cached_input_tokens", -"reasoning_tokens", -"cached_beside_input_tokens" FROM removed
	) AS changed ("day", "key_id", "model", "team_id", "user_id", "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens")
	GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
	ON CONFLICT ("month", "key_id", "model", "team_id", "user_id") DO UPDATE SET
		"request_count" = kept."request_count" + excluded."request_count",
		"input_tokens" = kept."input_tokens" + excluded."input_tokens",
		"output_tokens" = kept."output_tokens" + excluded."output_tokens",
		"cached_input_tokens" = kept."cached_input_tokens" + excluded."cached_input_tokens",
		"reasoning_tokens" = kept."reasoning_tokens" + excluded."reasoning_tokens",
		"cached_beside_input_tokens" = kept."cached_beside_input_tokens" + excluded."cached_beside_input_tokens";
	RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION "tollgate_delete_model_months"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE "usage_model_month" AS kept SET
		"request_count" = kept."request_count" - gone."request_count",
		"input_tokens" = kept."input_tokens" - gone."input_tokens",
		"output_tokens" = kept."output_tokens" - gone."output_tokens",
		"cached_input_tokens" = kept."cached_input_tokens" - gone."cached_input_tokens",
		"reasoning_tokens" = kept."reasoning_tokens" - gone."reasoning_tokens",
		"cached_beside_input_tokens" = kept."cached_beside_input_tokens" - gone."cached_beside_input_tokens"
	FROM (
		SELECT tollgate_month_of("day") AS "month", "key_id", "model", "team_id", "user_id", sum("request_count") AS "request_count", sum("input_tokens") AS "input_tokens", sum("output_tokens") AS "output_tokens", sum("cached_input_tokens") AS "cached_input_tokens", sum("reasoning_tokens") AS "reasoning_tokens", sum("cached_beside_input_tokens") AS "cached_beside_input_tokens"
		FROM removed GROUP BY 1, 2, 3, 4, 5
	) AS gone
	WHERE (kept."month", kept."key_id", kept."model", kept."team_id", kept."user_id") = (gone."month", gone."key_id", gone."model", gone."team_id", gone."user_id");
	DELETE FROM "usage_model_month"
	WHERE ("month", "key_id", "model", "team_id", "user_id") IN (SELECT tollgate_month_of("day"), "key_id", "model", "team_id", "user_id" FROM removed)
		AND ("request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens") = (0, 0, 0, 0, 0, 0);
	RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER "usage_model_month_insert" AFTER INSERT ON "usage_model_day" REFERENCING NEW TABLE AS added
	FOR EACH STATEMENT EXECUTE FUNCTION "tollgate_insert_model_months"();

CREATE OR REPLACE TRIGGER "usage_model_month_update" AFTER UPDATE ON "usage_model_day" REFERENCING OLD TABLE AS removed NEW TABLE AS added
	FOR EACH STATEMENT EXECUTE FUNCTION "tollgate_update_model_months"();

CREATE OR REPLACE TRIGGER "usage_model_month_delete" AFTER DELETE ON "usage_model_day" REFERENCING OLD TABLE AS removed
	FOR EACH STATEMENT EXECUTE FUNCTION "tollgate_delete_model_months"();
