//! How the conditions of the API are declared: each type with its reasons, what they mean, and on which kinds they occur.

use std::fmt;

/// A reason of a condition type. The reason decides whether the condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The type of the condition.
    pub type_: &'static str,
    /// The reason, in one word.
    pub reason: &'static str,
    /// Whether the condition's status is True.
    pub met: bool,
    /// The action for events with this reason.
    pub action: &'static str,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

/// A condition type as the documentation describes it.
#[derive(Debug)]
pub struct ConditionType {
    /// The type. One that ends in a dash is followed by a name.
    pub name: &'static str,
    /// What it describes.
    pub about: &'static str,
    /// Its reasons.
    pub reasons: &'static [ReasonEntry],
}

/// A reason as the documentation describes it.
#[derive(Debug)]
pub struct ReasonEntry {
    /// The reason.
    pub reason: Reason,
    /// The kinds whose objects can have it, as declared. `kinds::kinds_of_reason` has all of them.
    pub kinds: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
    /// What to do about it. Empty where there is nothing to do.
    pub remedy: &'static str,
}

/// Declares condition types. Each becomes an enum of its reasons; all together become [`CONDITIONS`](super::CONDITIONS).
macro_rules! conditions {
    ($(
        $(#[doc = $about:literal])+
        $type_:ident $(= $name:literal)? ($action:literal) {
            $( $reason:ident $status:ident [$($kind:ident),+] $meaning:literal $(=> $remedy:literal)?; )+
        }
    )+) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $type_ {
                $( #[doc = $meaning] $reason, )+
            }

            impl $type_ {
                /// The type of the condition, as written in a status.
                pub const TYPE: &'static str = conditions!(@name $type_ $($name)?);
            }

            impl From<$type_> for Reason {
                fn from(reason: $type_) -> Self {
                    match reason {
                        $( $type_::$reason => conditions!(@reason $type_ $reason $status $action), )+
                    }
                }
            }
        )+

        /// All condition types, in the order of the documentation.
        pub const CONDITIONS: &[ConditionType] = &[ $(
            ConditionType {
                name: $type_::TYPE,
                about: concat!($($about, "\n"),+),
                reasons: &[ $(
                    ReasonEntry {
                        reason: conditions!(@reason $type_ $reason $status $action),
                        kinds: &[$(stringify!($kind)),+],
                        meaning: $meaning,
                        remedy: concat!($($remedy)?),
                    },
                )+ ],
            },
        )+ ];
    };
    (@name $type_:ident) => { stringify!($type_) };
    (@name $type_:ident $name:literal) => { $name };
    (@reason $type_:ident $reason:ident $status:ident $action:literal) => {
        Reason {
            type_: $type_::TYPE,
            reason: stringify!($reason),
            met: conditions!(@met $status),
            action: $action,
        }
    };
    (@met met) => { true };
    (@met unmet) => { false };
}

pub(super) use conditions;
