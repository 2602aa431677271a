//! The `lasthop` command and the tree, tried where nothing is measured by the clock.

mod aggregation;
mod bad_input;
mod book;
mod cell_logs;
mod checked;
mod data_set;
mod floors;
mod hwsim;
mod language;
mod monitor;
mod output;
mod pages;
mod privileges;
mod simulated;
mod unprivileged;
