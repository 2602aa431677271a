//! Lessons of any bytes: nothing panics, and what is understood is written again as it was.
#![no_main]

use lasthop_laws::oal::lesson::Lesson;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(lesson) = Lesson::decode(bytes) {
        assert_eq!(lesson.encode(), bytes);
    }
});
