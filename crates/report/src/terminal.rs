//! What terminals' agents say that they have done.

use serde::{Deserialize, Serialize};

/// A terminal's agent's account of itself: the last line that it prints. Those of a run are one, and a part of `run.json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TerminalAccount {
    /// How windows were bounded.
    pub way: String,
    /// Times that it looked at its connections.
    pub looks: u64,
    /// Connections that were adopted.
    pub adopted: u64,
    /// Connections that had bounds at some time.
    pub bounded: u64,
    /// Most terminals that sent at once, as far as one of them heard.
    pub terminals: u32,
    /// Notices sent.
    pub told: u64,
    /// Notices of others that counted.
    pub heard: u64,
    /// Datagrams without influence.
    pub refused: u64,
    /// Times that the network changed.
    pub moves: u64,
}

impl TerminalAccount {
    /// The account as the line that an agent prints: `{"terminal":{…}}`.
    pub fn line(&self) -> String {
        serde_json::json!({ "terminal": self }).to_string()
    }

    /// This account and that of another terminal's agent as one.
    pub fn and(self, other: TerminalAccount) -> TerminalAccount {
        TerminalAccount {
            way: self.way,
            looks: self.looks + other.looks,
            adopted: self.adopted + other.adopted,
            bounded: self.bounded + other.bounded,
            terminals: self.terminals.max(other.terminals),
            told: self.told + other.told,
            heard: self.heard + other.heard,
            refused: self.refused + other.refused,
            moves: self.moves + other.moves,
        }
    }

    /// The last account in what an agent printed; `None` if there is none.
    pub fn find(printed: &str) -> Option<TerminalAccount> {
        #[derive(Deserialize)]
        struct Line {
            terminal: TerminalAccount,
        }
        printed.lines().rev().find_map(|line| serde_json::from_str::<Line>(line).ok()).map(|line| line.terminal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_in_other_output_and_added() {
        let one = TerminalAccount { way: "within".into(), terminals: 3, told: 5, ..TerminalAccount::default() };
        let printed = format!("host: hello\n{}\n", one.line());
        assert_eq!(TerminalAccount::find(&printed), Some(one.clone()));
        assert_eq!(TerminalAccount::find("host: hello"), None);
        let both = one.clone().and(TerminalAccount { terminals: 2, told: 1, ..one });
        assert_eq!((both.terminals, both.told), (3, 6));
    }
}
