//! Words that say nothing about what a tool does.

/// Words that any English text has, and those with which people begin a request.
const OF_ENGLISH: &str = "a about after again all also am an and any anyone are as at be because been before being between \
    both but by can cannot could did do does doing down each either etc every few for from further had has have having he \
    her here hers him his how however i if in into is it its itself just let me more most my myself no nor not of off on \
    once only or other our ours out over own per please same shall she should so some such than that the their theirs them \
    then there these they this those through to too under until up upon very via was we were what when where whether which \
    while who whom whose why will with within without would yes yet you your yours yourself \
    anything something everything able allow allows enable enables give given help helps like looking need needed needs \
    provide provided provides use used useful uses using want wants well";

/// Words that the descriptions of most tools have. Words that a tool may also be about, such as user or server, are not
/// among them: that many tools have them lowers what they count.
const OF_TOOLS: &str = "tool tools mcp parameter parameters param params argument arguments args optional required default \
    return returns returned schema boolean integer null true false";

/// Whether a word, in lower case, is one of them.
pub(crate) fn contains(word: &str) -> bool {
    use std::{collections::HashSet, sync::LazyLock};
    static ALL: LazyLock<HashSet<&str>> =
        LazyLock::new(|| OF_ENGLISH.split_whitespace().chain(OF_TOOLS.split_whitespace()).collect());
    ALL.contains(word)
}
