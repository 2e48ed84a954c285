//! The thread that starts all servers.
//!
//! A server asks the kernel to be killed when its parent dies, and the kernel means the parent *thread*: one that
//! was started by a test's thread would die with that test while others still use it. So one thread that lives as
//! long as the process starts them all.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};

type Order = (Command, Sender<io::Result<Child>>);

static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();

/// Starts `command` from the thread that outlives every test.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    let (reply, started) = channel();
    let gone = || io::Error::other("the thread that starts servers is gone");
    ORDERS.get_or_init(start).send((command, reply)).map_err(|_| gone())?;
    started.recv().map_err(|_| gone())?
}

fn start() -> Sender<Order> {
    let (orders, inbox) = channel();
    std::thread::spawn(move || serve(&inbox));
    orders
}

fn serve(inbox: &Receiver<Order>) {
    while let Ok((mut command, reply)) = inbox.recv() {
        // Whoever gave the order may have given up; the child is then killed with this process.
        let _ = reply.send(command.spawn());
    }
}
