-- Names the life of the server: another one after a promotion (its timeline) and after a crash (statistics begin anew).
-- Transaction ids do not repeat within one life. Also lifts synchronous_commit where it is off: an answer is durable. One row.
-- Index: none.
SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' ' || coalesce(w.stats_reset::TEXT, ''),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', FALSE) END
FROM pg_stat_wal AS w;
