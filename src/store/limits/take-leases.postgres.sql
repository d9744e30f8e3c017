-- Whether so many requests of a size fit all limits of a key, after those that are granted: `findExceeded` in
-- windows.ts says the same.
CREATE OR REPLACE FUNCTION "tollgate_lease_fits"(
	used bigint[], caps bigint[], of_tokens boolean[], granted bigint, granted_tokens bigint, size bigint, times bigint
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	added bigint;
BEGIN
	FOR i IN 1 .. coalesce(array_length(caps, 1), 0) LOOP
		added := times * CASE WHEN of_tokens[i] THEN least(size, caps[i]) ELSE 1 END;
		IF added > 0 AND used[i] + (CASE WHEN of_tokens[i] THEN granted_tokens ELSE granted END) + added > caps[i] THEN
			RETURN false;
		END IF;
	END LOOP;
	RETURN true;
END
$$;

-- For how many tokens all limits of a key allow a request of a size, after those that are granted; null: they do not. `decide`
-- in windows.ts says the same.
CREATE OR REPLACE FUNCTION "tollgate_lease_size"(
	used bigint[], caps bigint[], of_tokens boolean[], granted bigint, granted_tokens bigint, size bigint, least_size bigint
) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	room bigint;
BEGIN
	IF tollgate_lease_fits(used, caps, of_tokens, granted, granted_tokens, size, 1) THEN
		RETURN size;
	END IF;
	SELECT min(one.cap - one.sum - granted_tokens) INTO room
		FROM unnest(used, caps, of_tokens) AS one(sum, cap, is_of_tokens) WHERE one.is_of_tokens;
	IF room >= least_size AND tollgate_lease_fits(used, caps, of_tokens, granted, granted_tokens, room, 1) THEN
		RETURN room;
	END IF;
	RETURN NULL;
END
$$;

-- Takes leases for one process, as `prepareTake` in take-leases.ts does on SQLite. It is one call, so that nobody
-- waits for a process between two statements. It is volatile: each statement sees what was committed before it began, and
-- so the sums have what those wrote who had the locks before. Subjects of a request are judged as one vector.
CREATE OR REPLACE FUNCTION "tollgate_take_leases"(batch jsonb)
RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	own text := batch->>'instance';
	batch_version bigint := batch->>'version';
	asks jsonb := batch->'requests';
	now_ms bigint;
	this_second bigint;
	today bigint;
	monday bigint;
	month timestamp;
	first_day bigint;
	next_month bigint;
	ask jsonb;
	subject jsonb;
	key bigint;
	measures text[];
	own_caps bigint[];
	caps bigint[];
	of_tokens boolean[];
	used bigint[];
	sizes bigint[];
	leasts bigint[];
	size bigint;
	granted bigint;
	granted_tokens bigint;
	ahead bigint;
	places bigint;
	reserved bigint;
	own_places bigint;
	own_tokens bigint;
	minute_requests bigint;
	minute_tokens bigint;
	day_tokens bigint;
	week_tokens bigint;
	month_tokens bigint;
	seconds jsonb;
	leased jsonb[];
	lease jsonb;
	results jsonb[] := '{}';
BEGIN
	PERFORM pg_advisory_xact_lock(7655444, slot) FROM (
		SELECT DISTINCT ((one.value->>'id')::bigint % 2147483647)::integer AS slot
			FROM jsonb_array_elements(asks) AS given(value), jsonb_array_elements(given.value->'subjects') AS one(value)
			ORDER BY 1
	) AS slots;
	now_ms := coalesce((batch->>'now')::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000));
	this_second := now_ms / 1000;
	-- In Seoul.
	today := (this_second + 32400) / 86400;
	-- Day 0 was a Thursday.
	monday := today - (today + 3) % 7;
	month := date_trunc('month', (date '1970-01-01' + today::integer)::timestamp);
	first_day := month::date - date '1970-01-01';
	next_month := (month + interval '1 month')::date - date '1970-01-01';
	FOR ask IN SELECT value FROM jsonb_array_elements(asks) LOOP
		sizes := ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(ask->'requests') AS given(value));
		leasts := ARRAY(SELECT value::bigint FROM jsonb_array_elements_text(ask->'least') AS given(value));
		caps := '{}';
		of_tokens := '{}';
		used := '{}';
		leased := '{}';
		FOR subject IN SELECT value FROM jsonb_array_elements(ask->'subjects') LOOP
			key := (subject->>'id')::bigint;
			SELECT coalesce(array_agg(value->>0 ORDER BY n), '{}'), coalesce(array_agg((value->>1)::bigint ORDER BY n), '{}')
				INTO measures, own_caps FROM jsonb_array_elements(subject->'limits') WITH ORDINALITY AS given(value, n);
			minute_requests := 0;
			minute_tokens := 0;
			day_tokens := 0;
			week_tokens := 0;
			month_tokens := 0;
			INSERT INTO lease_seconds AS s (key_id, second, writer, requests, tokens)
				SELECT key, (value->>'second')::bigint, own, sum((value->>'requests')::bigint), 0
				FROM jsonb_array_elements(subject->'corrections') GROUP BY 2 ON CONFLICT (key_id, second, writer)
				DO UPDATE SET requests = s.requests + excluded.requests;
			-- What an earlier request of this batch was granted stands in our own row.
			SELECT coalesce(sum(l.places) FILTER (WHERE l.instance <> own), 0),
					coalesce(sum(l.tokens) FILTER (WHERE l.instance <> own), 0),
					coalesce(max(l.places) FILTER (WHERE l.instance = own AND l.version = batch_version),
						(subject->>'places')::bigint),
					coalesce(max(l.tokens) FILTER (WHERE l.instance = own AND l.version = batch_version),
						(subject->>'tokens')::bigint)
				INTO places, reserved, own_places, own_tokens FROM key_leases AS l WHERE l.key_id = key;
			places := places + own_places;
			reserved := reserved + own_tokens;
			IF 'requests minute' = ANY (measures) OR 'tokens minute' = ANY (measures) THEN
				-- Ignores the future: a clock that was set back must not lock a key out.
				SELECT coalesce(sum(s.requests), 0), coalesce(sum(s.tokens), 0) INTO minute_requests, minute_tokens
					FROM lease_seconds AS s
					WHERE s.key_id = key AND s.second > this_second - 61 AND s.second < this_second + 61;
			END IF;
			IF 'tokens day' = ANY (measures) THEN
				SELECT coalesce(sum(d.input_tokens + d.output_tokens + d.beside_tokens), 0) INTO day_tokens
					FROM usage_day AS d WHERE d.key_id = key AND d.day = today;
			END IF;
			IF 'tokens week' = ANY (measures) THEN
				SELECT coalesce(sum(d.input_tokens + d.output_tokens + d.beside_tokens), 0) INTO week_tokens
					FROM usage_day AS d
					WHERE d.key_id = key AND d.day = ANY (ARRAY(SELECT generate_series(monday, today)));
			END IF;
			IF 'tokens month' = ANY (measures) THEN
				SELECT coalesce(sum(d.input_tokens + d.output_tokens + d.beside_tokens), 0) INTO month_tokens
					FROM usage_day AS d
					WHERE d.key_id = key AND d.day = ANY (ARRAY(SELECT generate_series(first_day, next_month - 1)));
			END IF;
			caps := caps || own_caps;
			of_tokens := of_tokens || ARRAY(
				SELECT measure LIKE 'tokens%' FROM unnest(measures) WITH ORDINALITY AS given(measure, n) ORDER BY n);
			used := used || ARRAY(SELECT CASE measure
					WHEN 'places now' THEN places
					WHEN 'requests minute' THEN minute_requests
					WHEN 'tokens minute' THEN minute_tokens + reserved
					WHEN 'tokens day' THEN day_tokens + reserved
					WHEN 'tokens week' THEN week_tokens + reserved
					WHEN 'tokens month' THEN month_tokens + reserved
				END FROM unnest(measures) WITH ORDINALITY AS given(measure, n) ORDER BY n);
			leased := leased || jsonb_build_object('places', own_places, 'tokens', own_tokens, 'load', jsonb_build_object(
				'inFlight', places, 'reserved', reserved, 'minuteRequests', minute_requests, 'minuteTokens', minute_tokens,
				'dayTokens', day_tokens, 'weekTokens', week_tokens, 'monthTokens', month_tokens));
		END LOOP;
		granted := 0;
		granted_tokens := 0;
		FOR i IN 1 .. cardinality(sizes) LOOP
			size := tollgate_lease_size(used, caps, of_tokens, granted, granted_tokens, sizes[i], leasts[i]);
			IF size IS NOT NULL THEN
				granted := granted + 1;
				granted_tokens := granted_tokens + size;
			END IF;
		END LOOP;
		-- What is taken ahead fits 64 times, so that it hardly takes anything from other requests.
		ahead := (ask->>'ahead')::bigint;
		size := (ask->>'aheadTokens')::bigint;
		WHILE ahead > 0 AND NOT tollgate_lease_fits(used, caps, of_tokens, granted, granted_tokens, size, 64 * ahead) LOOP
			ahead := ahead / 2;
		END LOOP;
		granted_tokens := granted_tokens + ahead * size;
		FOR i IN 1 .. cardinality(leased) LOOP
			subject := ask->'subjects'->(i - 1);
			lease := leased[i];
			key := (subject->>'id')::bigint;
			seconds := NULL;
			IF (subject->>'refused')::bigint > 0 THEN
				INSERT INTO key_refusals AS r (day, key_id, requests) VALUES (today, key, (subject->>'refused')::bigint)
					ON CONFLICT (day, key_id) DO UPDATE SET requests = r.requests + excluded.requests;
			END IF;
			IF granted < cardinality(sizes) THEN
				-- They tell when a request may come again.
				SELECT coalesce(jsonb_agg(to_jsonb(sums)), '[]') INTO seconds FROM (
					SELECT s.second, sum(s.requests) AS requests, sum(s.tokens) AS tokens FROM lease_seconds AS s
					WHERE s.key_id = key AND s.second > this_second - 61 AND s.second < this_second + 61
					GROUP BY s.second ORDER BY s.second
				) AS sums;
			END IF;
			leased[i] := lease || jsonb_strip_nulls(jsonb_build_object('seconds', seconds));
			IF (subject->>'holds')::boolean THEN
				INSERT INTO key_leases AS l (key_id, instance, version, places, tokens) VALUES (key, own, batch_version,
						(lease->>'places')::bigint + granted, (lease->>'tokens')::bigint + granted_tokens)
					ON CONFLICT (key_id, instance)
					DO UPDATE SET version = excluded.version, places = excluded.places, tokens = excluded.tokens
					WHERE l.version <= excluded.version;
			END IF;
			IF granted + ahead > 0 AND (subject->>'asks')::boolean THEN
				INSERT INTO lease_seconds AS s (key_id, second, writer, requests, tokens)
					VALUES (key, this_second, own, granted + ahead, 0) ON CONFLICT (key_id, second, writer)
					DO UPDATE SET requests = s.requests + excluded.requests;
			END IF;
		END LOOP;
		results := results || jsonb_build_object('now', now_ms, 'ahead', ahead, 'subjects', to_jsonb(leased));
	END LOOP;
	RETURN to_jsonb(results);
END
$$;
