//! MCPExternalAuthConfig: how proxies authenticate to their backends.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    auth_server::EmbeddedAuthServer,
    config_status::ConfigStatus,
    enums::text_enum,
    external_auth::{
        AwsSts, BearerToken, CrossAppAccess, HeaderInjection, OnBehalfOf, TokenExchange, UpstreamInject,
    },
};

/// An MCPExternalAuthConfig defines how a proxy authenticates to its backend, or describes an authorization server
/// for the proxy to run. Workloads in the same namespace refer to it by name, and several can share it.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "toolhive.stacklok.dev",
    version = "v1beta1",
    kind = "MCPExternalAuthConfig",
    plural = "mcpexternalauthconfigs",
    shortname = "extauth",
    shortname = "mcpextauth",
    category = "toolhive",
    namespaced,
    schema = "disabled",
    status = "ConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Valid')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'tokenExchange' ? has(self.tokenExchange) : !has(self.tokenExchange)",
        "message": "tokenExchange must be set when type is tokenExchange, and left out otherwise",
    },
    {
        "rule": "self.type == 'headerInjection' ? has(self.headerInjection) : !has(self.headerInjection)",
        "message": "headerInjection must be set when type is headerInjection, and left out otherwise",
    },
    {
        "rule": "self.type == 'bearerToken' ? has(self.bearerToken) : !has(self.bearerToken)",
        "message": "bearerToken must be set when type is bearerToken, and left out otherwise",
    },
    {
        "rule": "self.type == 'embeddedAuthServer' ? has(self.embeddedAuthServer) : !has(self.embeddedAuthServer)",
        "message": "embeddedAuthServer must be set when type is embeddedAuthServer, and left out otherwise",
    },
    {
        "rule": "self.type == 'awsSts' ? has(self.awsSts) : !has(self.awsSts)",
        "message": "awsSts must be set when type is awsSts, and left out otherwise",
    },
    {
        "rule": "self.type == 'upstreamInject' ? has(self.upstreamInject) : !has(self.upstreamInject)",
        "message": "upstreamInject must be set when type is upstreamInject, and left out otherwise",
    },
    {
        "rule": "self.type == 'obo' ? has(self.obo) : !has(self.obo)",
        "message": "obo must be set when type is obo, and left out otherwise",
    },
    {
        "rule": "self.type == 'xaa' ? has(self.xaa) : !has(self.xaa)",
        "message": "xaa must be set when type is xaa, and left out otherwise",
    },
    {
        "rule": "self.type == 'unauthenticated' ? (!has(self.tokenExchange) && !has(self.headerInjection) && !has(self.bearerToken) && !has(self.embeddedAuthServer) && !has(self.awsSts) && !has(self.upstreamInject) && !has(self.obo) && !has(self.xaa)) : true",
        "message": "type unauthenticated takes no further fields: remove them, or choose the type that they belong to",
    },
]))]
pub struct MCPExternalAuthConfigSpec {
    /// The authentication method. Set the field of the same name as well; unauthenticated has none.
    #[serde(rename = "type")]
    pub type_: ExternalAuthType,
    /// A token service that exchanges the caller's token for another one. Set it with type tokenExchange.
    pub token_exchange: Option<TokenExchange>,
    /// A header with a fixed value. Set it with type headerInjection.
    pub header_injection: Option<HeaderInjection>,
    /// One bearer token for all callers. Set it with type bearerToken.
    pub bearer_token: Option<BearerToken>,
    /// The authorization server that the proxy runs. It sends users to an identity provider to log in and issues its
    /// own tokens to MCP clients. Set it with type embeddedAuthServer.
    pub embedded_auth_server: Option<EmbeddedAuthServer>,
    /// An AWS role that AWS STS grants for the caller's token; requests are signed with it. Set it with type awsSts.
    pub aws_sts: Option<AwsSts>,
    /// The caller's token from an upstream provider. Set it with type upstreamInject.
    pub upstream_inject: Option<UpstreamInject>,
    /// The on-behalf-of flow of Microsoft Entra ID. Set it with type obo.
    pub obo: Option<OnBehalfOf>,
    /// Cross-app access: the identity provider turns the caller's ID token into an assertion (ID-JAG), and another
    /// application's authorization server turns that into an access token. Set it with type xaa.
    pub xaa: Option<CrossAppAccess>,
}

text_enum! {
    /// How a proxy authenticates to its backend.
    pub enum ExternalAuthType {
        /// It exchanges the caller's token for another one (RFC 8693).
        TokenExchange = "tokenExchange",
        /// It sends a header with a fixed value. VirtualMCPServers do this; other workloads ignore it.
        HeaderInjection = "headerInjection",
        /// It sends one token for all callers. MCPRemoteProxies do this.
        BearerToken = "bearerToken",
        /// It sends no credentials.
        #[default]
        Unauthenticated = "unauthenticated",
        /// It runs an authorization server, and sends the users' tokens from its upstream provider.
        EmbeddedAuthServer = "embeddedAuthServer",
        /// It signs requests with temporary credentials of AWS.
        AwsSts = "awsSts",
        /// It sends the caller's token from one upstream provider. VirtualMCPServers with an authorization server do
        /// this; other workloads ignore it.
        UpstreamInject = "upstreamInject",
        /// It gets a token on behalf of the caller from Microsoft Entra ID. VirtualMCPServers do this; other workloads
        /// ignore it.
        Obo = "obo",
        /// It gets a token of another application through the identity provider. VirtualMCPServers with an
        /// authorization server do this; other workloads ignore it.
        Xaa = "xaa",
    }
}
