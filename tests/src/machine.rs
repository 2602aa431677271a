//! Which tests run beside each other. One that measures in wall-clock time needs the machine: tests of one group may run side by side,
//! as those of a file do, tests of two groups may not, in whatever programs they are.

use nix::fcntl::{Flock, FlockArg};
use std::cell::RefCell;
use std::fs::File;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The group that has the machine in this process.
struct Holder {
    /// `None`: one test alone.
    group: Option<String>,
    tests: usize,
    /// Keeps other processes out.
    _lock: Flock<File>,
}

static HOLDER: Mutex<Option<Holder>> = Mutex::new(None);
static FREED: Condvar = Condvar::new();

thread_local! {
    /// What a test holds until its thread ends ([`share`]).
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The machine, for as long as this lives.
pub struct Held(());

/// The machine for the calling test alone.
pub fn alone() -> Held {
    acquire(None)
}

/// The machine for the tests of `group`, until the calling test's thread ends or it asks anew.
pub fn share(group: &str) {
    let held = acquire(Some(group.to_owned()));
    HELD.set(Some(held));
}

fn acquire(group: Option<String>) -> Held {
    // Not while it waits for others.
    HELD.set(None);
    let mut holder = holder();
    loop {
        match &mut *holder {
            None => break,
            Some(held) if group.is_some() && held.group == group => {
                held.tests += 1;
                return Held(());
            }
            Some(_) => holder = FREED.wait(holder).unwrap_or_else(PoisonError::into_inner),
        }
    }
    let path = std::env::temp_dir().join("lasthop-tests.lock");
    let file = File::options().create(true).append(true).open(&path).expect("a lock file");
    let lock = Flock::lock(file, FlockArg::LockExclusive).expect("a lock");
    *holder = Some(Holder { group, tests: 1, _lock: lock });
    Held(())
}

fn holder() -> MutexGuard<'static, Option<Holder>> {
    // A test that fails leaves it as it should be: it is changed at once.
    HOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut holder = holder();
        let Some(held) = &mut *holder else { return };
        held.tests -= 1;
        if held.tests == 0 {
            *holder = None;
            FREED.notify_all();
        }
    }
}
