//! Wall and CPU time.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

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
    /// By all threads of the process together.
    pub cpu: Duration,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self { cpu: cpu(), wall: Instant::now() }
    }

    /// Time since the start.
    pub fn spent(self) -> Spent {
        let wall = self.wall.elapsed();
        Spent { wall, cpu: cpu().saturating_sub(self.cpu) }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}
