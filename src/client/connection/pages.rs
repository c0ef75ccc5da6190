//! Reads replies that come in pages.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::connection::client::{CallError, Client};
use api::ApiMethod;
use api::params::{ListPage, Page, PageParams};

/// The pages of a method, read one after the other.
pub struct Pages<'c, M: ApiMethod, Reply> {
    client: &'c Client,
    /// Parameters of the next page; `None` after the last one.
    params: Option<M::Params>,
    reply: PhantomData<fn() -> Reply>,
}

impl<M, Reply> Pages<'_, M, Reply>
where
    M: ApiMethod<Params: PageParams + Serialize>,
    Reply: Page + DeserializeOwned,
{
    /// The next page; `None` after the last one.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn next(&mut self) -> Result<Option<Reply>, CallError> {
        let Some(mut params) = self.params.take() else { return Ok(None) };
        let mut page: Reply = self.client.call_as::<M, Reply>(&params).await?;
        if let Some(cursor) = page.take_next_cursor() {
            params.set_cursor(cursor);
            self.params = Some(params);
        }
        Ok(Some(page))
    }

    /// Whether the last page was read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.params.is_none()
    }
}

/// A page of events with their original JSON texts, because an event may be newer than this client.
#[derive(Deserialize)]
pub(crate) struct RawEventsPage {
    pub(crate) events: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

impl Page for RawEventsPage {
    fn take_next_cursor(&mut self) -> Option<String> {
        self.next_cursor.take()
    }
}

impl Client {
    /// The pages of a method.
    pub fn pages<M: ApiMethod>(&self, params: M::Params) -> Pages<'_, M, M::Reply> {
        self.pages_as(params)
    }

    /// The pages of a method, read as another type with the same serialised form.
    pub fn pages_as<M: ApiMethod, Reply>(&self, params: M::Params) -> Pages<'_, M, Reply> {
        Pages { client: self, params: Some(params), reply: PhantomData }
    }

    /// All entries of a list.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn all_rows<M>(&self, params: M::Params) -> Result<Vec<<M::Reply as ListPage>::Row>, CallError>
    where
        M: ApiMethod<Params: PageParams, Reply: ListPage>,
    {
        let (mut pages, mut rows) = (self.pages::<M>(params), Vec::new());
        while let Some(page) = pages.next().await? {
            rows.extend(page.into_rows());
        }
        Ok(rows)
    }
}
