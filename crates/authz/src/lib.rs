//! Who may do what with an MCP server: Cedar policies, checked by the operator and decided by the proxy.
//!
//! A request is put to Cedar as one question: may this principal do this action on this resource, in this context?
//!
//! | | |
//! | --- | --- |
//! | principal | `Client::"<subject>"`, with each claim of the token as `claim_<name>`, in `THVGroup::"<g>"` for each group and role |
//! | action | `Action::"call_tool"`, `"get_prompt"` or `"read_resource"`, with `operation` (its own name) |
//! | resource | `Tool::"<name>"`, `Prompt::"<name>"` or `Resource::"<uri>"` in `MCP::"<server>"`, with `name`, `operation`, `feature`, the arguments, and `uri` of a resource or the hints of a tool |
//! | context | the claims as `claim_<name>` and the arguments as `arg_<name>` |
//!
//! A request passes if a policy permits it, none forbids it, **and no policy fails**: one that reads what the request
//! does not have says nothing, so the request is denied. Methods that ask for nothing are not checked, lists are
//! filtered item by item with the question that a call would be put to, and methods that are not known are denied
//! ([`treatment`]). There is no `list_tools`: a policy that names it never applies, and [`check`] warns of it, as it
//! does of other policies that say something else than they seem to.
//!
//! Values keep their JSON type, with these rules:
//!
//! - **Numbers are Cedar decimals**, as JSON does not tell integers from others: `context.arg_n.lessThan(decimal("5.0"))`.
//!   A decimal has four places and reaches to about ±922 trillion. A number is never rounded to fit: one that does not
//!   is a record of its digits, `{number: "0.12345"}`. So it is there for `has`, equals no decimal, and to order it
//!   is an error, which denies.
//! - Null is left out, and so is what is nested deeper than ten levels.
//! - Arguments that are lists, objects or null are not looked into: `arg_<name>_present` is true.
//! - A claim that is listed in `multi_valued_claims` is a text in `claim_<name>`, its values joined by spaces, and a set
//!   in `claimset_<name>`, whether the token holds a list or such a text.
//! - Groups are in the configured claim, a name or a path with dots, or else in the first list among `groups`, `roles`
//!   and `cognito:groups`. Roles are in the configured claim only. Both become the same type of entity.
//!
//! Entities of `entities_json` are there for every request. What they say of a principal, an action or a resource is
//! joined with what the request says of it, parents with parents, attributes with attributes: the request's own count,
//! except a tool's hints, which a server says of itself.
//!
//! Apart from that, some configurations choose by the claims of a token alone, with an expression in CEL: see
//! [`Matcher`].
//!
//! Instead of policies, a document may name a service that decides: [`Pdp`] says what it is asked.
//!
//! Nothing here does I/O.

mod attributes;
mod authorizer;
mod claims;
mod decision;
mod document;
mod entities;
mod error;
mod groups;
mod matcher;
mod method;
mod pdp;
mod place;
mod policies;
mod request;
mod size;
mod value;
mod warnings;

pub use authorizer::{Authorizer, Subject};
pub use decision::{Decision, Denial};
pub use document::{Backend, Document, check};
pub use error::Error;
pub use matcher::{Matcher, MatcherError, NoMatch};
pub use method::{Treatment, treatment};
pub use pdp::{Pdp, PdpContext, PdpHttp};
pub use request::{Action, Feature, Hints, Principal, Resource};
pub use skep_config::run_config::Cedar;
pub use warnings::Warning;
