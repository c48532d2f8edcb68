// SPDX-License-Identifier: MIT
// The same with tokio: WHAT SIZE ITERATIONS prints nanoseconds for each iteration. What needs one
// thread has tokio's runtime for one; work for others has two workers.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::{broadcast, mpsc, oneshot, Mutex, Notify, Semaphore};
use tokio::task::{spawn, spawn_blocking, yield_now, JoinHandle};
use tokio::time::{sleep, timeout};

const WORKERS: usize = 2;
/// As in measure.hpp.
const WARM_LAPS: usize = 4;

/// On the thread that calls it.
fn here(work: impl Future<Output = f64>) -> f64 {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// On one of two workers: a task that spawns others there spares them the way through the queue
/// for what comes from outside.
fn on_workers(work: impl Future<Output = f64> + Send + 'static) -> f64 {
    let workers = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().unwrap();
    workers.block_on(async { spawn(work).await.unwrap() })
}

fn each(from: Instant, rounds: usize) -> f64 {
    from.elapsed().as_nanos() as f64 / rounds as f64
}

async fn all_of<T>(tasks: Vec<JoinHandle<T>>) {
    for task in tasks {
        task.await.unwrap();
    }
}

async fn snooze(size: usize, switches: usize) -> f64 {
    let rounds = switches / size;
    let left = Arc::new(AtomicUsize::new(size));
    let (end, ended) = oneshot::channel();
    let end = Arc::new(std::sync::Mutex::new(Some(end)));
    let tasks = (0..size)
        .map(|_| {
            let (left, end) = (left.clone(), end.clone());
            spawn(async move {
                for _ in 0..WARM_LAPS + rounds {
                    yield_now().await;
                }
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    let _ = end.lock().unwrap().take().unwrap().send(Instant::now());
                }
                yield_now().await; // none ends before the last one has been through
            })
        })
        .collect();
    for _ in 0..=WARM_LAPS {
        yield_now().await;
    }
    let from = Instant::now();
    all_of(tasks).await;
    (ended.await.unwrap() - from).as_nanos() as f64 / (rounds * size) as f64
}

async fn spin_await(_: usize, rounds: usize) -> f64 {
    let mut sum = 0;
    let from = Instant::now();
    for i in 0..rounds {
        sum += spawn(async move { i & 1 }).await.unwrap();
    }
    assert_eq!(sum, rounds / 2);
    each(from, rounds)
}

async fn spin_all_await_all(size: usize) -> f64 {
    let sum = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::with_capacity(size);
    let from = Instant::now();
    for _ in 0..size {
        let sum = sum.clone();
        tasks.push(spawn(async move {
            sum.fetch_add(1, Ordering::Relaxed);
        }));
    }
    all_of(tasks).await;
    each(from, size)
}

async fn spun_cold(size: usize, _: usize) -> f64 {
    spin_all_await_all(size).await
}

async fn spun_warm(size: usize, _: usize) -> f64 {
    spin_all_await_all(size).await;
    spin_all_await_all(size).await
}

async fn deadline(_: usize, rounds: usize) -> f64 {
    let given = Arc::new(Notify::new());
    let awaited = given.clone();
    let waiter = spawn(async move {
        for _ in 0..rounds {
            timeout(Duration::from_secs(3600), awaited.notified()).await.unwrap();
        }
    });
    let waker = spawn(async move {
        for _ in 0..rounds {
            given.notify_one();
            yield_now().await;
        }
    });
    let from = Instant::now();
    waiter.await.unwrap();
    waker.await.unwrap();
    each(from, rounds)
}

fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Milliseconds of the processor; each sleeps as long as in the other programs.
async fn sleepers(size: usize, _: usize) -> f64 {
    let from = processor_time();
    let tasks = (0..size)
        .map(|i| spawn(sleep(Duration::from_millis((i as u64 * 2654435761 % 1000) + 1))))
        .collect();
    all_of(tasks).await;
    (processor_time() - from) / 1e6
}

fn sum_of(first: usize, size: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        if size <= 1 {
            return first;
        }
        let part = size / 10;
        let parts: Vec<_> = (0..10).map(|i| spawn(sum_of(first + i * part, part))).collect();
        let mut sum = 0;
        for part in parts {
            sum += part.await.unwrap();
        }
        sum
    })
}

/// One task for each number up to size, a power of ten, and ten for one above them.
async fn tree(size: usize, _: usize) -> f64 {
    let from = Instant::now();
    assert_eq!(spawn(sum_of(0, size)).await.unwrap(), size * (size - 1) / 2);
    each(from, size)
}

async fn ping_pong(_: usize, rounds: usize) -> f64 {
    let (there, mut at_there) = mpsc::channel(1);
    let (back, mut at_back) = mpsc::channel(1);
    spawn(async move {
        while let Some(next) = at_there.recv().await {
            back.send(next).await.unwrap();
        }
    });
    let from = Instant::now();
    for i in 0..rounds {
        there.send(i).await.unwrap();
        at_back.recv().await.unwrap();
    }
    each(from, rounds)
}

async fn mutex_free(_: usize, rounds: usize) -> f64 {
    let lock = Mutex::new(0);
    let from = Instant::now();
    for _ in 0..rounds {
        *lock.lock().await += 1;
    }
    each(from, rounds)
}

async fn mutex_wanted(_: usize, rounds: usize) -> f64 {
    const TASKS: usize = 100;
    let lock = Arc::new(Mutex::new(0));
    let tasks = (0..TASKS)
        .map(|_| {
            let lock = lock.clone();
            spawn(async move {
                for _ in 0..rounds / TASKS {
                    let mut sum = lock.lock().await;
                    *sum += 1;
                    yield_now().await;
                }
            })
        })
        .collect();
    let from = Instant::now();
    all_of(tasks).await;
    each(from, rounds)
}

async fn semaphores(_: usize, rounds: usize) -> f64 {
    let ping = Arc::new(Semaphore::new(0));
    let pong = Arc::new(Semaphore::new(0));
    let (there, back) = (ping.clone(), pong.clone());
    spawn(async move {
        for _ in 0..rounds {
            there.acquire().await.unwrap().forget();
            back.add_permits(1);
        }
    });
    let from = Instant::now();
    for _ in 0..rounds {
        ping.add_permits(1);
        pong.acquire().await.unwrap().forget();
    }
    each(from, rounds)
}

async fn select_of_4(_: usize, rounds: usize) -> f64 {
    let (to_a, mut a) = mpsc::channel(1);
    let (to_b, mut b) = mpsc::channel(1);
    let (to_c, mut c) = mpsc::channel(1);
    let (to_d, mut d) = mpsc::channel(1);
    let to = [to_a, to_b, to_c, to_d];
    spawn(async move {
        for i in 0..rounds {
            to[i % 4].send(1).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let from = Instant::now();
    for _ in 0..rounds {
        tokio::select! {
            found = a.recv() => found,
            found = b.recv() => found,
            found = c.recv() => found,
            found = d.recv() => found,
        };
    }
    each(from, rounds)
}

/// Of a set that is not known before the program runs.
async fn select_of_range(_: usize, rounds: usize) -> f64 {
    const SIZE: usize = 8;
    let (to, mut from): (Vec<_>, Vec<_>) = (0..SIZE).map(|_| mpsc::channel::<i32>(1)).unzip();
    spawn(async move {
        for i in 0..rounds {
            to[i % SIZE].send(1).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let begun = Instant::now();
    for _ in 0..rounds {
        std::future::poll_fn(|context| {
            for each in from.iter_mut() {
                if let Poll::Ready(item) = each.poll_recv(context) {
                    return Poll::Ready(item);
                }
            }
            Poll::Pending
        })
        .await;
    }
    each(begun, rounds)
}

/// A semaphore without permits is the latch that tokio has.
async fn latches(_: usize, rounds: usize) -> f64 {
    const SIZE: usize = 10;
    let from = Instant::now();
    for _ in 0..rounds {
        let done = Arc::new(Semaphore::new(0));
        for _ in 0..SIZE {
            let done = done.clone();
            spawn(async move { done.add_permits(1) });
        }
        done.acquire_many(SIZE as u32).await.unwrap().forget();
    }
    each(from, rounds)
}

/// An item is received by 10 tasks, none of which misses any.
async fn broadcasts(_: usize, items: usize) -> f64 {
    const AT_ONCE: usize = 32;
    let (told, _) = broadcast::channel::<usize>(2 * AT_ONCE);
    let readers = (0..10)
        .map(|_| {
            let mut mine = told.subscribe();
            spawn(async move {
                let mut sum = 0;
                loop {
                    match mine.recv().await {
                        Ok(item) => sum += item,
                        Err(broadcast::error::RecvError::Closed) => return sum,
                        Err(missed) => panic!("{}", missed),
                    }
                }
            })
        })
        .collect::<Vec<_>>();
    yield_now().await;
    let from = Instant::now();
    for i in 1..=items {
        told.send(1).unwrap();
        if i % AT_ONCE == 0 {
            yield_now().await;
        }
    }
    drop(told);
    all_of(readers).await;
    each(from, items)
}

async fn request(_: usize, rounds: usize) -> f64 {
    let (questions, mut asked) = mpsc::channel::<(usize, oneshot::Sender<usize>)>(64);
    spawn(async move {
        while let Some((number, answer)) = asked.recv().await {
            answer.send(number + 1).unwrap();
        }
    });
    let from = Instant::now();
    for i in 0..rounds {
        let (answer, answered) = oneshot::channel();
        questions.send((i, answer)).await.unwrap();
        answered.await.unwrap();
    }
    each(from, rounds)
}

/// Each job leaves its result in its own place.
async fn jobs(_: usize, count: usize) -> f64 {
    let results: Arc<Vec<AtomicUsize>> = Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect());
    let left = Arc::new(AtomicUsize::new(count));
    let over = Arc::new(Notify::new());
    let from = Instant::now();
    for i in 0..count {
        let (results, left, over) = (results.clone(), left.clone(), over.clone());
        spawn(async move {
            results[i].store(i * 2, Ordering::Relaxed);
            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                over.notify_one();
            }
        });
    }
    over.notified().await;
    each(from, count)
}

async fn jobs_futures(_: usize, count: usize) -> f64 {
    let mut results = Vec::with_capacity(count);
    let from = Instant::now();
    for i in 0..count {
        results.push(spawn(async move { i * 2 }));
    }
    all_of(results).await;
    each(from, count)
}

async fn one_job(_: usize, count: usize) -> f64 {
    let from = Instant::now();
    for i in 0..count {
        assert_eq!(spawn(async move { i * 2 }).await.unwrap(), i * 2);
    }
    each(from, count)
}

fn compute_for(span: Duration) {
    let from = Instant::now();
    while from.elapsed() < span {}
}

/// Microseconds from the gift of a job to its end, of the slowest of 99 in 100: all compute for
/// two, but one of them for 50,000.
async fn beside_long(_: usize, count: usize) -> f64 {
    let mut jobs = Vec::with_capacity(count);
    for i in 0..count {
        let given = Instant::now();
        jobs.push(spawn(async move {
            compute_for(Duration::from_micros(if i == count / 10 { 50_000 } else { 2 }));
            given.elapsed().as_nanos() as f64 / 1e3
        }));
    }
    let mut taken = Vec::with_capacity(count);
    for job in jobs {
        taken.push(job.await.unwrap());
    }
    taken.sort_by(f64::total_cmp);
    taken[count * 99 / 100]
}

async fn offload(_: usize, count: usize) -> f64 {
    let from = Instant::now();
    for i in 0..count {
        assert_eq!(spawn_blocking(move || i * 2).await.unwrap(), i * 2);
    }
    each(from, count)
}

fn measure(what: &str, size: usize, rounds: usize) -> Option<f64> {
    Some(match what {
        "snooze" => here(snooze(size, rounds)),
        "spin_await" => here(spin_await(size, rounds)),
        "spun_cold" => here(spun_cold(size, rounds)),
        "spun_warm" => here(spun_warm(size, rounds)),
        "deadline" => here(deadline(size, rounds)),
        "sleepers" => here(sleepers(size, rounds)),
        "tree" => here(tree(size, rounds)),
        "ping_pong" => here(ping_pong(size, rounds)),
        "mutex_free" => here(mutex_free(size, rounds)),
        "mutex_wanted" => here(mutex_wanted(size, rounds)),
        "semaphores" => here(semaphores(size, rounds)),
        "select_of_4" => here(select_of_4(size, rounds)),
        "select_of_range" => here(select_of_range(size, rounds)),
        "latches" => here(latches(size, rounds)),
        "broadcasts" => here(broadcasts(size, rounds)),
        "request" => here(request(size, rounds)),
        "two_threads" => on_workers(ping_pong(size, rounds)),
        "jobs" => on_workers(jobs(size, rounds)),
        "jobs_futures" => on_workers(jobs_futures(size, rounds)),
        "beside_long" => on_workers(beside_long(size, rounds)),
        "one_job" => on_workers(one_job(size, rounds)),
        "offload" => here(offload(size, rounds)),
        _ => return None,
    })
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    if let (4, Some(size), Some(rounds)) = (words.len(), number(2), number(3)) {
        if let Some(found) = measure(&words[1], size, rounds) {
            println!("{:.3}", found);
            return;
        }
    }
    eprintln!("usage: tokio_bench WHAT SIZE ITERATIONS");
    std::process::exit(2);
}
