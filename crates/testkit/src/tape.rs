//! [`Tape`]: choices read from bytes, so that shrinking the bytes shrinks what was chosen.

/// A list of bytes that answers questions; once it is used up the answer is 0, the simplest one.
#[derive(Debug, Clone)]
pub struct Tape<'a> {
    bytes: &'a [u8],
}

impl<'a> Tape<'a> {
    /// From its beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// A number below `options` (0 when there are none).
    pub fn choose(&mut self, options: usize) -> usize {
        match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                usize::from(first).checked_rem(options).unwrap_or(0)
            }
            None => 0,
        }
    }

    /// One of `options`, which must not be empty.
    pub fn pick<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.choose(options.len())].clone()
    }

    /// True in `per_256` of 256 cases; false once the tape is used up.
    pub fn chance(&mut self, per_256: usize) -> bool {
        self.choose(256) >= 256usize.saturating_sub(per_256)
    }
}
