//! A script as a tree.

use std::sync::Arc;

/// An expression, and the byte where it starts.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) at: u32,
    /// How many expressions are nested in it.
    pub(super) height: u16,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Name(Arc<str>),
    Int(i128),
    Float(f64),
    Text(Arc<str>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Comprehension(Box<Comprehension>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    /// The value if the condition holds, the condition, and the other value.
    Conditional(Box<[Expr; 3]>),
    Lambda(Box<Function>),
    Call(Box<Call>),
    Attribute(Box<Expr>, Arc<str>),
    Index(Box<Expr>, Box<Expr>),
    /// Of the first, from, to and by the others.
    Slice(Box<Expr>, Box<[Option<Expr>; 3]>),
}

#[derive(Debug)]
pub(crate) struct Comprehension {
    /// The key of a dict.
    pub(crate) key: Option<Expr>,
    pub(crate) value: Expr,
    pub(crate) clauses: Vec<Clause>,
}

#[derive(Debug)]
pub(crate) enum Clause {
    For(Expr, Expr),
    If(Expr),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: Expr,
    pub(crate) arguments: Vec<Argument>,
}

#[derive(Debug)]
pub(crate) enum Argument {
    Positional(Expr),
    Named(Arc<str>, Expr),
    /// All items of a list.
    Items(Expr),
    /// All entries of a dict.
    Entries(Expr),
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Arc<str>,
    pub(crate) kind: ParameterKind,
    pub(crate) default: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Positional,
    /// By name only.
    Named,
    /// The other positional arguments.
    Items,
    /// The other named arguments.
    Entries,
}

#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    pub(crate) at: u32,
}

#[derive(Debug)]
pub(crate) enum StatementKind {
    Expr(Expr),
    Assign(Expr, Expr),
    Augment(Expr, BinaryOp, Expr),
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>),
    For(Expr, Expr, Vec<Statement>),
    Def(Function),
    Return(Option<Expr>),
    Break,
    Continue,
    Pass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Not,
    Minus,
    Plus,
    Invert,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Or,
    Xor,
    And,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
}

impl BinaryOp {
    /// The operator as it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Or => "|",
            Self::Xor => "^",
            Self::And => "&",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Modulo => "%",
        }
    }

    /// Which operators bind more strongly. Comparisons come first.
    pub(super) fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::Xor => 2,
            Self::And => 3,
            Self::ShiftLeft | Self::ShiftRight => 4,
            Self::Add | Self::Subtract => 5,
            Self::Multiply | Self::Divide | Self::FloorDivide | Self::Modulo => 6,
            _ => 0,
        }
    }
}
