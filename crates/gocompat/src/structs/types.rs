//! How a Go struct is described: its fields in the order of their declaration, each with its type.

/// A Go struct, as its fields in order.
pub struct Struct(pub(super) &'static [Field]);

/// A field of a struct.
pub(super) struct Field {
    pub(super) name: &'static str,
    /// The tag `omitempty`.
    pub(super) omit_empty: bool,
    pub(super) of: Type,
}

/// The type of a value.
pub(super) enum Type {
    Bool,
    Int,
    IntOrString,
    Quantity,
    /// JSON that Go passes through unparsed.
    Raw,
    Text,
    Time,
    List(&'static Type),
    Map(&'static Type),
    Pointer(&'static Type),
    Struct(&'static Struct),
}
