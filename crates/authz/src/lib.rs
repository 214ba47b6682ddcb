//! Authorization of MCP requests: Cedar policies, validated by the operator and evaluated by the proxy.
//!
//! An MCP request becomes a Cedar request: a principal, an action, a resource and a context.
//!
//! | | |
//! | --- | --- |
//! | principal | `Client::"<subject>"`, with each claim of the token as `claim_<name>`, in `THVGroup::"<g>"` for each group and role |
//! | | `Workflow::"<name>"`, without claims, where a workflow of a virtual server runs as itself |
//! | action | `Action::"call_tool"`, `"get_prompt"` or `"read_resource"`, with `operation` (its own name) |
//! | resource | `Tool::"<name>"`, `Prompt::"<name>"` or `Resource::"<uri>"` in `MCP::"<server>"`, with `name`, `operation`, `feature`, the arguments, and `uri` of a resource or the hints of a tool |
//! | context | the claims as `claim_<name>` and the arguments as `arg_<name>` |
//!
//! A request passes if a policy permits it, none forbids it, **and no policy fails**: the effect of a policy that reads
//! a missing attribute is unknown, so the request is denied. Methods without a resource are not checked, lists are
//! filtered item by item by the decision on the corresponding call, and unknown methods are denied
//! ([`treatment`]). There is no `list_tools`: a policy that names it never applies, and [`check`] warns about it, as it
//! does about other policies that are likely mistakes.
//!
//! Values keep their JSON type, with these rules:
//!
//! - **Numbers are Cedar decimals**, as JSON has one type of number: `context.arg_n.lessThan(decimal("5.0"))`. A
//!   decimal has four places and a range of about ±922 trillion. A number is never rounded to fit: one that does not
//!   fit is a record of its digits, `{number: "0.12345"}`. So `has` is true, it equals no decimal, and comparing its
//!   order is an error, which denies.
//! - Null is omitted, and so are values nested deeper than ten levels.
//! - Arguments that are lists, objects or null are not inspected: `arg_<name>_present` is true.
//! - A claim that is listed in `multi_valued_claims` is a string in `claim_<name>`, its values joined by spaces, and
//!   a set in `claimset_<name>`, for a list as for such a string in the token.
//! - Groups are in the configured claim, a name or a path with dots, or by default in the first list among `groups`,
//!   `roles` and `cognito:groups`. Roles are in the configured claim only. Both become the same type of entity.
//!
//! Entities of `entities_json` are part of every request. Those of a principal, an action or a resource are
//! merged with those of the request, parents with parents, attributes with attributes: attributes of the request win,
//! except a tool's hints, which come from the server.
//!
//! Some configurations depend on the claims of a token alone, with an expression in CEL: see
//! [`Matcher`].
//!
//! Instead of policies, a document may name a policy decision point: [`Pdp`] has the format of its requests.
//!
//! Nothing here does I/O.

mod attributes;
mod authorizer;
mod caller;
mod claims;
mod compiled;
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
mod reads;
mod recent;
mod request;
mod scopes;
mod size;
mod subject;
mod value;
mod warnings;

pub use authorizer::Authorizer;
pub use decision::{Decision, Denial};
pub use document::{Backend, Document, check, mistakes};
pub use error::Error;
pub use matcher::{EvaluationError, Matcher, MatcherError};
pub use method::{Treatment, treatment};
pub use pdp::{Pdp, PdpContext, PdpHttp};
pub use request::{Action, Feature, Hints, Principal, PrincipalKind, Resource};
pub use size::LARGEST_STACK;
pub use skep_config::run_config::Cedar;
pub use subject::Subject;
pub use warnings::Warning;
