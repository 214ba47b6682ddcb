//! Tokens for pods.

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::Semaphore;

use crate::limits;

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// The account whose tokens have this subject, if it is one.
    pub fn of_subject(subject: &str) -> Option<Self> {
        let (namespace, name) = subject.strip_prefix("system:serviceaccount:")?.split_once(':')?;
        let has_all = !namespace.is_empty() && !name.is_empty();
        has_all.then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// Requests tokens of an account.
pub(super) struct Tokens {
    accounts: Api<ServiceAccount>,
    account: Account,
    /// The places for requests: all pods may be connected to at the same time.
    places: Semaphore,
}

impl Tokens {
    pub(super) fn new(client: Client, account: Account) -> Self {
        let accounts = Api::namespaced(client, &account.namespace);
        Self { accounts, account, places: Semaphore::new(limits::TOKEN_REQUESTS) }
    }

    /// Requests a token for this audience.
    pub(super) async fn request(&self, audience: String) -> kube::Result<String> {
        let _place = self.places.acquire().await;
        let spec = TokenRequestSpec {
            audiences: vec![audience],
            expiration_seconds: i64::try_from(limits::TOKEN_TIME.as_secs()).ok(),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let name = &self.account.name;
        let issued = self.accounts.create_token_request(name, &PostParams::default(), &request).await?;
        Ok(issued.status.map(|status| status.token).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_in_the_subject_of_its_tokens() {
        let account = Account { namespace: "skep-system".into(), name: "skep-console".into() };
        assert_eq!(Account::of_subject("system:serviceaccount:skep-system:skep-console"), Some(account));
        for other in ["system:serviceaccount:a", "system:serviceaccount::a", "alice", ""] {
            assert_eq!(Account::of_subject(other), None, "{other}");
        }
    }
}
