//! Where the names of a picture's legend stand.

/// Height of a line, in pixels.
pub(super) const LINE: i32 = 20;
/// Width of a letter.
pub(super) const LETTER: i32 = 7;
/// Where lines begin.
const LEFT: i32 = 70;

/// Line and place of each name, where lines end at `width`; a name has a sample before it and room behind it, all in pixels.
pub(super) fn places<'n>(
    names: impl Iterator<Item = &'n str>,
    width: u32,
    (sample, room): (i32, i32),
) -> Vec<(i32, i32)> {
    let last = i32::try_from(width).unwrap_or(i32::MAX);
    let (mut line, mut at) = (0, LEFT);
    let entry = |name: &str| {
        let width = sample + LETTER * i32::try_from(name.chars().count()).unwrap_or(0) + room;
        if at > LEFT && at + width > last {
            (line, at) = (line + 1, LEFT);
        }
        at += width;
        (line, at - width)
    };
    names.map(entry).collect()
}

/// Pixels that a legend needs below the picture.
pub(super) fn height(places: &[(i32, i32)]) -> u32 {
    let lines = places.iter().map(|(line, _)| line + 1).max().unwrap_or(0);
    u32::try_from(lines * LINE + 8).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_fit_begins_a_line() {
        // Each takes 10 + 7 * 10 + 20 = 100 pixels, of 300 behind the first 70.
        let name = "ten of it.";
        let found = places([name; 4].into_iter(), 370, (10, 20));
        assert_eq!(found, [(0, 70), (0, 170), (0, 270), (1, 70)]);
        assert_eq!((height(&found), height(&[])), (48, 8));
    }
}
