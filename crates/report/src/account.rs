//! What programs say in the end that they have done: one JSON object each, as the last line that they print.
//!
//! A program's record is declared where it is counted, and is a map of names and values from there on: a further counter is
//! one field of that record.

use serde::Serialize;
use serde_json::{Map, Value};

/// What a program has done, by the names of its counters.
pub type Account = Map<String, Value>;

/// Numbers that begin so are maxima; all others are sums.
const MAXIMA: [&str; 3] = ["longest_", "largest_", "most_"];

/// An account as the line that its program prints: `{"KEY":{…}}`.
///
/// # Panics
/// If the record has a map with keys that are not text.
pub fn line(key: &str, account: &impl Serialize) -> String {
    let account = serde_json::to_value(account).expect("a record of named counters");
    Value::from(Map::from_iter([(key.to_owned(), account)])).to_string()
}

/// The last account under `key` in what a program printed; `None` if there is none.
pub fn find(key: &str, printed: &str) -> Option<Account> {
    let of_line = |line| match serde_json::from_str::<Map<String, Value>>(line).ok()?.remove(key)? {
        Value::Object(account) => Some(account),
        _ => None,
    };
    printed.lines().rev().find_map(of_line)
}

/// The accounts of several programs as one: numbers add up, but where a name begins with `longest_`, `largest_` or `most_`
/// the larger one stays; of all else the first.
pub fn add(account: &mut Account, other: Account) {
    for (name, value) in other {
        match account.get_mut(&name) {
            Some(own) => *own = together(&name, own, value),
            None => drop(account.insert(name, value)),
        }
    }
}

/// A counter of an account; 0 if there is none of that name.
pub fn counter(account: &Account, name: &str) -> u64 {
    account.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// True for the name of a counter that is a maximum.
pub fn is_maximum(name: &str) -> bool {
    MAXIMA.iter().any(|prefix| name.starts_with(prefix))
}

fn together(name: &str, one: &Value, other: Value) -> Value {
    let largest = is_maximum(name);
    match (one.as_u64(), other.as_u64(), one.as_f64(), other.as_f64()) {
        (Some(one), Some(other), ..) if largest => one.max(other).into(),
        (Some(one), Some(other), ..) => one.saturating_add(other).into(),
        (_, _, Some(one), Some(other)) if largest => one.max(other).into(),
        (_, _, Some(one), Some(other)) => (one + other).into(),
        _ => one.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Account {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn an_account_is_found_among_what_else_was_printed() {
        let account = of(json!({"method": "tcx", "driver_losses": 2}));
        let printed = format!("hello\n{{\"other\":1}}\n{}\nnot JSON\n", line("agent", &account));
        assert_eq!(find("agent", &printed), Some(account));
        assert_eq!(find("relay", &printed), None);
        assert_eq!(find("other", &printed), None, "no object");
        assert_eq!(find("agent", "3 flows managed"), None);
    }

    #[test]
    fn accounts_of_both_ends_are_found_and_added_up() {
        let sender = find("pbe_sender", "hello\n{\"pbe_sender\":{\"promised\":1,\"options\":9}}\n");
        let mut both = sender.expect("an account");
        add(&mut both, of(json!({"agreed": 1, "options": 2})));
        assert_eq!(both, of(json!({"promised": 1, "options": 11, "agreed": 1})));
        assert_eq!((counter(&both, "options"), counter(&both, "lost")), (11, 0));
    }

    #[test]
    fn what_is_a_maximum_stays_one_and_what_is_no_number_the_first() {
        let mut one = of(json!({"way": "within", "most_terminals": 3, "longest_work_us": 2.5, "waited_s": 1.5}));
        add(&mut one, of(json!({"way": "clamp", "most_terminals": 2, "longest_work_us": 4.0, "waited_s": 1})));
        assert_eq!(one, of(json!({"way": "within", "most_terminals": 3, "longest_work_us": 4.0, "waited_s": 2.5})));
    }
}
