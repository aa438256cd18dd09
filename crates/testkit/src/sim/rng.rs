//! Chance from a seed: xoshiro256++, the same on every platform and in every release.
//!
//! A run is replayed from its seed for as long as the repository lives, so the generator is written out here
//! instead of taken from a crate whose stream may change.

/// A generator.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator for a seed; the seed is spread by splitmix64.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut spread = seed;
        let mut next = || {
            spread = spread.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = spread;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Self { state: [next(), next(), next(), next()] }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number below `bound`; 0 where the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product is uniform enough here: bounds are far below 2^32.
        let wide = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(wide >> 64).expect("the high half fits")
    }

    /// A position in a list of `length`, which must not be empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a usize")
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        let width = u64::try_from(most - least).expect("least comes first") + 1;
        least + i64::try_from(self.below(width)).expect("below an i64")
    }

    /// Whether something happens that happens `permille` times in a thousand.
    pub fn chance(&mut self, permille: u32) -> bool {
        permille > 0 && self.below(1000) < u64::from(permille)
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            let other = self.index(end + 1);
            list.swap(end, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_03_the_stream_of_a_seed_never_changes() {
        let mut rng = Rng::new(1);
        let stream: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(stream, EXPECTED);
        let mut counts = [0_u32; 10];
        (0..10_000).for_each(|_| counts[rng.index(10)] += 1);
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        let mut list: Vec<u32> = (0..20).collect();
        rng.shuffle(&mut list);
        assert_ne!(list, (0..20).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..20).collect::<Vec<_>>());
        assert!((0..1000).all(|_| (3..=5).contains(&rng.between(3, 5))));
    }

    const EXPECTED: [u64; 3] =
        [14_971_601_782_005_023_387, 13_781_649_495_232_077_965, 1_847_458_086_238_483_744];
}
