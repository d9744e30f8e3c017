-- Triggers and functions: c95b3f046f0ae7d7
ALTER TABLE "request_log" ADD COLUMN "trace_id" text;