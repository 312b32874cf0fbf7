//! Tables from the outside: commits, versions, change feed, crashes.

#[cfg(test)]
mod basics;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod model;
