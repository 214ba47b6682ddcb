//! How the pages look. The policy of a page has the hash of this text, so no other style applies.

/// The style of every page, in light and dark, and on a phone.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1b1b1f;--quiet:#55555e;--ground:#f4f4f7;--card:#fff;--line:#d5d5dc;--action:#0b57d0;\
--on-action:#fff;--good:#146c2e;--bad:#a3261c}\
@media(prefers-color-scheme:dark){:root{--text:#f2f2f5;--quiet:#b5b5bf;--ground:#141417;--card:#1f1f24;--line:#3d3d45;\
--action:#a8c7fa;--on-action:#0b1f44;--good:#7fd99a;--bad:#ffb4ab}}\
*{box-sizing:border-box}\
body{font:1rem/1.5 system-ui,sans-serif;margin:0;padding:clamp(0rem,4vw,3rem) 0;color:var(--text);background:var(--ground)}\
main{max-width:32rem;margin:0 auto;padding:1.5rem;background:var(--card);border:1px solid var(--line);border-radius:1rem}\
h1{font-size:1.4rem;line-height:1.3;margin:0 0 1rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:0;overflow-wrap:anywhere}\
section{border-top:1px solid var(--line);margin-top:1.25rem;padding-top:1.25rem}\
dl{margin:0}dt{color:var(--quiet);font-size:.9rem;margin-top:.9rem}dd{margin:0;overflow-wrap:anywhere}\
ul{margin:0;padding-left:1.2rem}p{margin:1rem 0 0}.quiet{color:var(--quiet)}.good{color:var(--good)}.bad{color:var(--bad)}\
form{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.5rem}\
button,.button{flex:1 1 8rem;font:inherit;font-weight:600;padding:.75rem 1rem;border-radius:.6rem;border:1px solid var(--quiet);\
background:var(--card);color:var(--text);cursor:pointer;text-align:center;text-decoration:none}\
form.last{border-top:1px solid var(--line);padding-top:1.25rem}\
button[value=allow],button.first{background:var(--action);border-color:var(--action);color:var(--on-action)}\
button:focus-visible,.button:focus-visible{outline:3px solid var(--action);outline-offset:2px}\
@media(max-width:34rem){body{padding:0}main{border:0;border-radius:0;min-height:100vh}}";
