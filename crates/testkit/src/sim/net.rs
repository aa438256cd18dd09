//! The line between buyers and nodes: a request runs on a node and dies with it.
//!
//! Invariant: a buyer hears an answer, an error, or that the line broke; never nothing.

use std::cell::{RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use onceward::Engine;
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::time::Millis;

use super::world::World;

/// A future that the executor polls.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// How a request ended.
enum Reply<T> {
    Open,
    Answer(Result<T, Error>),
    Broken,
}

/// What the executor shares with buyers.
#[derive(Default)]
pub(crate) struct Switchboard {
    nodes: Vec<Option<Engine>>,
    spawned: Vec<(usize, Task)>,
    errands: Vec<Task>,
}

/// A buyer's end of the line.
#[derive(Clone)]
pub(crate) struct Net {
    pub(crate) world: Arc<World>,
    board: Rc<RefCell<Switchboard>>,
}

/// Answers in this many tries, or the buyer goes home.
const PATIENCE: u32 = 10_000;

impl Net {
    pub(crate) fn new(world: Arc<World>, nodes: usize) -> Self {
        let board = Switchboard { nodes: vec![None; nodes], spawned: Vec::new(), errands: Vec::new() };
        Self { world, board: Rc::new(RefCell::new(board)) }
    }

    fn board(&self) -> RefMut<'_, Switchboard> {
        self.board.borrow_mut()
    }

    /// Says which engine a node runs now; none while it is down.
    pub(crate) fn plug(&self, node: usize, engine: Option<Engine>) {
        self.board().nodes[node] = engine;
    }

    /// The engine of a node that is up.
    pub(crate) fn engine(&self, node: usize) -> Option<Engine> {
        self.board().nodes[node].clone()
    }

    /// Requests that wait for the executor to take them up.
    pub(crate) fn take_spawned(&self) -> Vec<(usize, Task)> {
        std::mem::take(&mut self.board().spawned)
    }

    /// Lets somebody outside do something on the side: a run ends only after all of it is done.
    pub(crate) fn send_out(&self, errand: impl Future<Output = ()> + 'static) {
        self.board().errands.push(Box::pin(errand));
    }

    /// Errands that wait for the executor to take them up.
    pub(crate) fn take_errands(&self) -> Vec<Task> {
        std::mem::take(&mut self.board().errands)
    }

    /// Calls any node that is up; `None` where the line broke or nobody is up.
    async fn call<T, F>(&self, run: impl FnOnce(Engine) -> F + 'static) -> Option<Result<T, Error>>
    where
        T: 'static,
        F: Future<Output = Result<T, Error>>,
    {
        let up: Vec<(usize, Engine)> = {
            let board = self.board();
            let engines = board.nodes.iter().enumerate();
            engines.filter_map(|(node, engine)| Some((node, engine.clone()?))).collect()
        };
        if up.is_empty() {
            return None;
        }
        let (node, engine) = up[self.world.draw(|rng| rng.index(up.len()))].clone();
        let reply = Rc::new(RefCell::new(Reply::Open));
        let line = Line { world: self.world.clone(), caller: self.world.current(), reply: reply.clone() };
        let task = async move {
            let answer = run(engine).await;
            line.end(Reply::Answer(answer));
        };
        self.board().spawned.push((node, Box::pin(task)));
        self.world.await_reply().await;
        let ended = reply.replace(Reply::Open);
        match ended {
            Reply::Answer(answer) => Some(answer),
            Reply::Broken => {
                self.world.sometimes("line_broke");
                None
            }
            Reply::Open => unreachable!("a caller is woken only when its line has ended"),
        }
    }

    /// Asks again with the same ids until the answer is known: a value, or a business refusal (DR-04).
    pub(crate) async fn ask<T, F>(
        &self,
        run: impl Fn(Engine) -> F + Clone + 'static,
    ) -> Option<Result<T, Code>>
    where
        T: 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        for _ in 0..PATIENCE {
            let run = run.clone();
            match self.call(run).await {
                Some(Ok(value)) => return Some(Ok(value)),
                Some(Err(error)) if error.class() == Class::Rejected => return Some(Err(error.code())),
                Some(Err(_)) | None => {
                    let wait = self.world.draw(|rng| rng.between(1, 3_000));
                    self.world.sleep(Millis(wait)).await;
                }
            }
        }
        self.world.violated("a buyer had no answer for a whole day".to_owned());
        None
    }
}

/// The node's end of the line; hanging up without a word breaks it.
struct Line<T> {
    world: Arc<World>,
    caller: usize,
    reply: Rc<RefCell<Reply<T>>>,
}

impl<T> Line<T> {
    fn end(&self, how: Reply<T>) {
        let mut reply = self.reply.borrow_mut();
        if matches!(*reply, Reply::Open) {
            *reply = how;
            self.world.unpark(self.caller);
        }
    }
}

impl<T> Drop for Line<T> {
    fn drop(&mut self) {
        self.end(Reply::Broken);
    }
}
