"""Jobs side by side in fresh processes that never outlive their parent.

Each worker holds the reading end of one pipe, the *lifeline*; only the parent holds the writing end. When
the parent closes it or dies, however it dies, the workers read end-of-file and leave at once. A job that
must not be lost writes its own result before it returns.
"""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from typing import Any

Report = Callable[[int, int], None]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

_messages: Any = None


def run_jobs(
    function: Callable[[Any, Report], Any],
    jobs: Sequence[Any],
    *,
    workers: int,
    threads: int = 1,
    gpus: Sequence[str] = (),
    on_progress: Callable[[int, int, int], None] | None = None,
) -> Iterator[tuple[int, Any, BaseException | None]]:
    """Yield `(index of the job, result, error)` as jobs end; one of the two is None.

    A job whose process dies, for example out of memory, is given up with a BrokenProcessPool once it dies
    running alone; jobs that ran beside it run again. After an error that leaves a GPU unusable for its
    process, the workers are replaced, once the jobs under way have ended.

    Args:
        function: a module-level function of a job, which can be pickled, and of `report(done, total)`.
        workers: how many processes, for each of the GPUs if there are some; 0 does the jobs in this one.
        threads: what each worker may use, set before it imports torch.
        gpus: GPUs as `CUDA_VISIBLE_DEVICES` names them; each worker sees one of them, all have as many.
        on_progress: called as `(index of the job, done, total)`, from another thread where there are workers.
    """
    on_progress = on_progress or (lambda index, done, total: None)
    if workers < 0 or threads < 1:
        raise ValueError(f"{workers} workers of {threads} threads; give 0 or more workers, 1 or more threads")
    if workers == 0:
        for index, job in enumerate(jobs):
            try:
                yield index, function(job, partial(on_progress, index)), None
            except Exception as error:
                yield index, None, error
        return
    waiting, suspects = deque(range(len(jobs))), deque()
    while suspects or waiting:
        # If several jobs were under way when a process died, the cause is unknown: each runs alone.
        todo = suspects or waiting
        width = 1 if suspects else min(workers * max(1, len(gpus)), len(waiting))
        cut, error = yield from _side_by_side(function, jobs, todo, width, threads, gpus, on_progress)
        if len(cut) == 1:
            yield cut[0], None, error
        else:
            suspects.extend(cut)


def _side_by_side(
    function: Callable[[Any, Report], Any],
    jobs: Sequence[Any],
    todo: deque[int],
    width: int,
    threads: int,
    gpus: Sequence[str],
    on_progress: Callable[[int, int, int], None],
) -> Generator[tuple[int, Any, BaseException | None], None, tuple[list[int], BaseException | None]]:
    """Do the jobs whose indices are in `todo`, removing them, until none is left or a process dies or becomes
    unusable. Return the indices of the jobs that a death interrupted, and its error."""
    context = get_context("spawn")
    lifeline, keep = context.Pipe(duplex=False)
    messages, places = context.SimpleQueue(), context.SimpleQueue()
    for number in range(width if gpus else 0):
        places.put(gpus[number % len(gpus)])
    listener = threading.Thread(target=_listen, args=(messages, on_progress), daemon=True)
    listener.start()
    shared = lifeline, messages, places if gpus else None, threads
    pool = ProcessPoolExecutor(max_workers=width, mp_context=context, initializer=_start, initargs=shared)
    cut: list[int] = []
    finished, broken, used_up = False, None, False
    under_way: dict[Future, int] = {}
    try:
        while (todo and not broken and not used_up) or under_way:
            while todo and not broken and not used_up and len(under_way) < width:
                try:
                    future = pool.submit(_call, function, todo[0], jobs[todo[0]])
                except BrokenProcessPool as error:  # it died with nothing to do, or what is under way says so
                    broken = error
                    break
                under_way[future] = todo.popleft()
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                index, error = under_way.pop(future), future.exception()
                if isinstance(error, BrokenProcessPool):
                    broken = error
                    cut.append(index)
                else:
                    used_up = used_up or poisoned(error)
                    yield index, None if error else future.result(), error
        finished = broken is None
        return sorted(cut), broken
    finally:
        pool.shutdown(wait=finished, cancel_futures=True)
        keep.close()
        lifeline.close()
        if finished:  # a worker cut off while it reported may hold the queue's lock for ever
            messages.put(None)
            listener.join()


def poisoned(error: BaseException | None) -> bool:
    """Whether this error leaves the GPU unusable for its process, as an index out of range does: CUDA then
    answers every call with the same error. Running out of memory does not."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    fatal = "AcceleratorError" in kinds or ("RuntimeError" in kinds and "CUDA error" in str(error))
    return fatal and "OutOfMemoryError" not in kinds


def _listen(messages: Any, on_progress: Callable[[int, int, int], None]) -> None:
    while (message := messages.get()) is not None:
        on_progress(*message)


def _start(lifeline: Any, messages: Any, places: Any, threads: int) -> None:
    global _messages
    if places is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = places.get()
    _messages = messages
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; it lets go of the lifeline
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    threading.Thread(target=_leave_with_parent, args=(lifeline,), daemon=True).start()


def _leave_with_parent(lifeline: Any) -> None:
    try:
        lifeline.recv()
    except EOFError:
        os._exit(1)


def _call(function: Callable[[Any, Report], Any], index: int, job: Any) -> Any:
    return function(job, at_most_every(0.2, lambda done, total: _messages.put((index, done, total))))


def at_most_every(seconds: float, tell: Report) -> Report:
    """`tell` at most once in so many seconds, and at the end."""
    last = 0.0

    def report(done: int, total: int) -> None:
        nonlocal last
        if done >= total or time.monotonic() - last > seconds:
            last = time.monotonic()
            tell(done, total)

    return report
