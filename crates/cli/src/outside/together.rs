//! Several futures as one: without tasks, so that all of them end with whoever drives them.

use std::pin::Pin;
use std::task::Poll;

use crate::failure::Failure;

/// Drives futures together until all are done or one fails.
///
/// # Errors
/// The first failure; the others are dropped then.
pub(crate) async fn all<F: Future<Output = Result<(), Failure>>>(
    futures: impl Iterator<Item = F>,
) -> Result<(), Failure> {
    let mut open: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        let mut failure = None;
        open.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(cause)) => {
                failure = Some(cause);
                false
            }
        });
        match failure {
            Some(cause) => Poll::Ready(Err(cause)),
            None if open.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await
}
