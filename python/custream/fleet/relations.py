"""Relations that questions share, in SQL that DuckDB and Spark take. Times are each rank's own; nothing here compares clocks.

All is made of two steps, which sort once and look at each row once, however long the run: islands() and stretches().
"""
COLLECTIVE = "(kind = 'kernel' AND (name LIKE 'ncclDevKernel%' OR name LIKE 'ncclKernel%'))"


def islands(source, keys):
    """`source` has keys, since, until. The same, with what overlaps or touches made one."""
    order = f"PARTITION BY {keys} ORDER BY since, until ROWS BETWEEN UNBOUNDED PRECEDING AND"
    return f"""
        SELECT {keys}, min(since) AS since, max(until) AS until FROM (
          SELECT *, sum(begins) OVER ({order} CURRENT ROW) AS island FROM (
            SELECT *, CASE WHEN since <= max(until) OVER ({order} 1 PRECEDING) THEN 0 ELSE 1 END AS begins FROM ({source}) pieces) marked) counted
        GROUP BY {keys}, island"""


def stretches(one, other, keys):
    """Both have keys, since, until, and pieces that do not overlap. The pieces of `one`, cut where those of `other` begin and end: one_since names the piece, other_since
    that of `other` in which the stretch lies, or is null."""
    return f"""
        SELECT {keys}, since, until, one_since, CASE WHEN until <= other_until THEN other_since END AS other_since FROM (
          SELECT {keys}, moment AS since, lead(moment) OVER (PARTITION BY {keys} ORDER BY moment) AS until,
                 max(one_since) OVER before AS one_since, max(one_until) OVER before AS one_until,
                 max(other_since) OVER before AS other_since, max(other_until) OVER before AS other_until
          FROM (SELECT {keys}, since AS moment, since AS one_since, until AS one_until, CAST(NULL AS BIGINT) AS other_since, CAST(NULL AS BIGINT) AS other_until FROM ({one}) a
                UNION ALL SELECT {keys}, until, NULL, NULL, NULL, NULL FROM ({one}) a
                UNION ALL SELECT {keys}, since, NULL, NULL, since, until FROM ({other}) b
                UNION ALL SELECT {keys}, until, NULL, NULL, NULL, NULL FROM ({other}) b) moments
          WINDOW before AS (PARTITION BY {keys} ORDER BY moment ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) cut
        WHERE since < until AND until <= one_until"""


def work_pieces(which):
    return f"SELECT rank, device, start_ns AS since, start_ns + dur_ns AS until FROM work WHERE {which}"


# When a device computed; when it computed or copied; when it communicated; when it did anything.
COMPUTING = islands(work_pieces(f"kind <> 'gpu_memcpy' AND kind <> 'gpu_memset' AND NOT {COLLECTIVE}"), "rank, device")
WORKING = islands(work_pieces(f"NOT {COLLECTIVE}"), "rank, device")
COMMUNICATING = islands(work_pieces(COLLECTIVE), "rank, device")
BUSY = islands(work_pieces("true"), "rank, device")

# When a device did nothing, in pieces with one cause each, as `custream report` tells them.
PAUSES = "SELECT rank, device, start_ns AS since, start_ns + dur_ns AS until, cause, why, doing, in_call FROM idle"

RELATIONS = {"computing": COMPUTING, "working": WORKING, "communicating": COMMUNICATING, "busy": BUSY, "pauses": PAUSES}
