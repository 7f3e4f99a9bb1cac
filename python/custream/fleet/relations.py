"""Relations that questions share, in SQL that DuckDB and Spark take. Times are each rank's own; nothing here compares clocks.

All is made of two steps, which sort once and look at each row once, however long the run: islands() and stretches().
"""
COLLECTIVE = "(kind = 'kernel' AND (name LIKE 'ncclDevKernel%' OR name LIKE 'ncclKernel%'))"
LATENCY_NS = 100_000  # tools/custream/model/model.h: what is idle for longer after its last known obstacle has no known cause


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

# Calls of the driver; of traces of other tools, which have none, those of the runtime. Those of one thread do not overlap.
# A copy that returns when it is done waits as a synchronisation does.
HOST_CALLS = """
    SELECT c.rank AS rank, file, start_ns, dur_ns, name, thread, correlation,
           CASE WHEN blocked_ns IS NOT NULL OR (name LIKE 'cuMemcpy%' AND name NOT LIKE '%Async%') THEN 'blocked' ELSE 'in a call' END AS doing
    FROM calls c LEFT JOIN (SELECT DISTINCT rank FROM calls WHERE level = 'driver') d ON c.rank = d.rank
    WHERE level = 'driver' OR (level = 'runtime' AND d.rank IS NULL)"""

# The times in which a device did nothing, each with the work that came next and the call that made that.
GAPS = """
    SELECT g.rank AS rank, device, since, until, waited_for, thread, c.start_ns AS called, c.start_ns + c.dur_ns AS returned
    FROM (SELECT rank, file, device, correlation, waited_for, start_ns AS until,
                 max(start_ns + dur_ns) OVER (PARTITION BY rank, device ORDER BY start_ns, dur_ns, coalesce(correlation, 0)
                                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS since
          FROM work) g
    LEFT JOIN host_calls c ON c.rank = g.rank AND c.file = g.file AND c.correlation = g.correlation
    WHERE since < until"""

# The same in pieces with one cause each, in the classes of `custream report`: until the call began the host is the cause; then what the work waited for; then the
# launch. Each of the latter two for LATENCY_NS; the rest has no known cause.
CAUSES = f"""
    WITH called AS (SELECT *, least(until, greatest(since, coalesce(called, since))) AS ready FROM gaps),
    held AS (
      SELECT *, CASE WHEN waited_for = 'event' THEN 'event' WHEN waited_for = 'default stream' THEN 'legacy' WHEN waited_for IS NULL AND called IS NOT NULL THEN 'launch' END AS holds
      FROM called),
    named AS (
      SELECT *, least(until, CASE WHEN holds IS NULL OR (holds = 'launch' AND returned < since - {LATENCY_NS}) THEN ready ELSE greatest(ready, CASE WHEN holds = 'launch' THEN returned ELSE ready END) + {LATENCY_NS} END) AS known
      FROM held)
    SELECT rank, device, thread, since, ready AS until, 'host' AS cause FROM named WHERE since < ready
    UNION ALL SELECT rank, device, thread, ready, known, holds FROM named WHERE ready < known
    UNION ALL SELECT rank, device, thread, known, until, 'unknown' FROM named WHERE known < until"""

HOST_PIECES = "SELECT rank, device, thread, since, until FROM causes WHERE cause = 'host'"
# Calls of a thread, beside each device for whose work a gap waited.
THREADS = f"""
    SELECT t.rank AS rank, t.device AS device, t.thread AS thread, c.start_ns AS since, c.start_ns + c.dur_ns AS until
    FROM (SELECT DISTINCT rank, device, thread FROM ({HOST_PIECES}) p) t JOIN host_calls c ON c.rank = t.rank AND c.thread = t.thread WHERE c.dur_ns > 0"""

# And the host's part by what the thread did that was to enqueue the next work: doing and in_call as in the report's table idle_host.
IDLE = f"""
    SELECT rank, device, since, until, cause, CAST(NULL AS STRING) AS doing, CAST(NULL AS STRING) AS in_call FROM causes WHERE cause <> 'host'
    UNION ALL
    SELECT s.rank, device, since, until, 'host', coalesce(doing, 'own code'), name
    FROM ({stretches(HOST_PIECES, THREADS, 'rank, device, thread')}) s
    LEFT JOIN host_calls c ON c.rank = s.rank AND c.thread = s.thread AND c.start_ns = s.other_since AND c.dur_ns > 0"""

# name: (query, the kept relations that it reads)
RELATIONS = {
    "host_calls": (HOST_CALLS, ()),
    "computing": (COMPUTING, ()),
    "working": (WORKING, ()),
    "communicating": (COMMUNICATING, ()),
    "busy": (BUSY, ()),
    "gaps": (GAPS, ("host_calls",)),
    "causes": (CAUSES, ("gaps",)),
    "idle": (IDLE, ("causes", "host_calls")),
}
