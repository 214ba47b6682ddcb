//! Reading a body to its end.

use bytes::{Bytes, BytesMut};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;

use super::{Budget, Exhausted, Share};
use crate::identity::Holder;

/// Why a body was not read to its end.
#[derive(Debug)]
pub enum ReadError {
    /// It is larger than it may be.
    TooLarge,
    /// It broke off.
    Broken,
    /// Other bodies use up the budget, or those of the caller its part of it.
    Exhausted,
}

/// The whole body, if it is not larger than `limit`, with its share of the budget.
pub async fn read_counted<B>(body: B, limit: usize, budget: &Budget) -> Result<(Bytes, Share), ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut share = budget.share();
    let bytes = pieces(body, limit, |length| share.grow(length)).await?;
    Ok((bytes, share))
}

/// The same for a body of a caller, which has a part of the budget, and this share. The caller is computed if the body is large enough
/// to be counted.
pub async fn read_counted_of<B>(
    body: B,
    limit: usize,
    share: &mut Share,
    holder: impl Fn() -> Option<Holder>,
) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    pieces(body, limit, |length| share.grow_of(length, &holder)).await
}

/// The whole body, if it is not larger than `limit`, of a service that is called too seldom to be counted.
pub async fn read<B>(body: B, limit: usize) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    pieces(body, limit, |_| Ok(())).await
}

/// Reads and drops a body, or the first `limit` bytes of it.
pub async fn discard<B>(mut body: B, limit: usize)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut read = 0;
    while read < limit
        && let Some(Ok(frame)) = body.frame().await
    {
        read += frame.data_ref().map_or(0, Bytes::len);
    }
}

async fn pieces<B>(
    mut body: B,
    limit: usize,
    mut takes: impl FnMut(usize) -> Result<(), Exhausted>,
) -> Result<Bytes, ReadError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    // Its declared length is too large.
    if body.size_hint().lower() > limit as u64 {
        return Err(ReadError::TooLarge);
    }
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| ReadError::Broken)?.into_data() else { continue };
        let before = rest.as_ref().map_or(first.len(), BytesMut::len);
        if before + data.len() > limit {
            return Err(ReadError::TooLarge);
        }
        takes(data.len()).map_err(|_| ReadError::Exhausted)?;
        match &mut rest {
            // Most bodies come in one piece, which is then not copied.
            None if first.is_empty() => first = data,
            None => {
                let mut joined = BytesMut::with_capacity(first.len() + data.len());
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&data);
                rest = Some(joined);
            }
            Some(rest) => rest.extend_from_slice(&data),
        }
    }
    Ok(rest.map_or(first, BytesMut::freeze))
}
