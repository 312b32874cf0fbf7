//! Wall and CPU time.

use std::time::{Duration, Instant};

/// Started at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: Instant,
    cpu: Duration,
}

/// Time spent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// By the clock on the wall.
    pub wall: Duration,
    /// By all threads of the process together; zero where the system does not tell.
    pub cpu: Duration,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self { cpu: cpu(), wall: Instant::now() }
    }

    /// Time since the start.
    pub fn spent(self) -> Spent {
        Spent { wall: self.wall.elapsed(), cpu: cpu().saturating_sub(self.cpu) }
    }
}

/// CPU time of all living threads, from Linux' scheduler statistics.
fn cpu() -> Duration {
    let of_thread = |entry: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
        let text = std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    Duration::from_nanos(threads.filter_map(of_thread).sum())
}
