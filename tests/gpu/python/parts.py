"""A program in parts: each prints one line, and one that this machine's library cannot do says so and does not end the others.

The output is compared with and without the shim, so a part returns what is the same in every run: integers, codes, rounded numbers.
"""
import sys
import threading


def part(name, run, *args):
    try:
        result = run(*args)
    except Exception as error:  # the type alone: messages hold addresses and paths
        result = f"unavailable: {type(error).__name__}"
        print(f"{name}: {error}", file=sys.stderr)
    print(f"{name}: {result}", flush=True)


def checksum(values):
    """A checksum of whole numbers in which order counts."""
    total = 0
    for value in values:
        total = (total * 31 + int(value)) & 0xFFFFFFFF
    return f"{total:08x}"


def in_threads(count, work):
    """Run work(0) ... work(count - 1) in as many threads; their results in order."""
    results = [None] * count

    def run(number):
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = f"unavailable: {type(error).__name__}"
            print(f"thread {number}: {error}", file=sys.stderr)

    threads = [threading.Thread(target=run, args=(n,), name=f"worker-{n}") for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
