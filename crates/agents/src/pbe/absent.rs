//! The agents of a build without eBPF.

use super::error::Error;
use super::{ReceiverConfig, ReceiverSummary, SenderConfig, SenderSummary};
use crate::service::absent;

absent!(Sender, [SenderConfig], SenderSummary, Error);
absent!(Receiver, [ReceiverConfig], ReceiverSummary, Error);
