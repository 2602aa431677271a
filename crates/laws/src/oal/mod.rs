//! Rate allocation on the access point, enforced by rewriting receive windows.
