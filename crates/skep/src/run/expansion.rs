//! `$(NAME)` in commands, arguments and variables, replaced as the kubelet does.

use super::variables::Variables;

/// The text with the variable in place of each `$(NAME)`. One that is not known stays as it is, and `$$` is one `$`.
pub(super) fn expanded(text: &str, variables: &Variables) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            match variables.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out + rest
}

/// Adds variables in this order. Each may name those before it.
pub(super) fn add_expanded(variables: &mut Variables, more: impl IntoIterator<Item = (String, String)>) {
    for (name, value) in more {
        let value = expanded(&value, variables);
        variables.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_brackets_are_replaced_as_in_a_pod() {
        let variables =
            Variables::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "$(A)".to_owned())]);
        for (text, expected) in [
            ("--port=$(A)", "--port=1"),
            ("$(A)$(A)", "11"),
            // What a variable contains is not looked at again.
            ("$(B)", "$(A)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$(C) $A ${A} $", "$(C) $A ${A} $"),
            ("$(A", "$(A"),
            ("é$(A)é", "é1é"),
            ("", ""),
        ] {
            assert_eq!(expanded(text, &variables), expected, "{text}");
        }
    }

    #[test]
    fn a_variable_may_name_those_before_it() {
        let mut variables = Variables::from([("HOST".to_owned(), "db".to_owned())]);
        let more = [("PORT", "5432"), ("URL", "$(HOST):$(PORT)$(LATER)"), ("LATER", "x")];
        add_expanded(&mut variables, more.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(variables["URL"], "db:5432$(LATER)");
    }
}
