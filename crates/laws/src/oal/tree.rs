//! A decision tree: how it decides, what makes it valid, and how it is written as bytes.
//! Source:     \[oal\] for the decision tree; its form as an array and in bytes is own.
//! Equations:  x_f <= threshold -> left, x_f > threshold -> right, x_f missing -> the side that most items of the training took
//! Symbols:    x -> [`Vector`], f, threshold -> `Node::Split`
//! Deviations: it is evaluated where the driver's report is read, not in the kernel: a program there has nothing newer to read.
//! Validity:   a [`Tree`] is proof: it can only be had valid. Children stand behind their parents, so that no way through it is
//!             longer than the array.
//! Checked by: tests::*, tests/integration/oal_props.rs, the fuzz target `tree`

use super::features::{FEATURES, SCHEMA, Vector};
use super::predictor::LossClass;

/// Splits on the longest way that are accepted.
pub const DEPTH_MAX: u32 = 32;

/// A node of a tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Node {
    /// Ends with a class.
    Leaf(LossClass),
    /// Goes on to another node.
    Split {
        /// The feature that is looked at.
        feature: u8,
        /// Up to this it goes left.
        threshold: f32,
        /// The node on the left.
        left: u16,
        /// The node on the right.
        right: u16,
        /// Where the feature is missing: true goes left.
        missing_left: bool,
    },
}

/// A valid tree.
#[derive(Clone, PartialEq, Debug)]
pub struct Tree {
    version: u64,
    /// The classes that were trained, a bit each.
    trained: u8,
    nodes: Vec<Node>,
}

/// Why something is no tree.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// Too short, too long, or not a tree at all.
    #[error("{0} octets are no tree")]
    Length(usize),
    /// It begins like nothing that is known.
    #[error("not a tree of format 1")]
    Format,
    /// It was trained with other features.
    #[error("features {0:#018x}, not {SCHEMA:#018x}")]
    Schema(u64),
    /// A node that cannot be.
    #[error("node {0} cannot be")]
    Node(usize),
    /// A node that is led to from none or from several.
    #[error("node {0} has not one parent")]
    Parent(usize),
    /// The way to a node is too long.
    #[error("node {0} is deeper than {DEPTH_MAX}")]
    Depth(usize),
}

impl Tree {
    /// A tree from its nodes, the root first. `trained`: the classes that its training saw, bit `n` for the class `n`.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub fn new(version: u64, trained: u8, nodes: Vec<Node>) -> Result<Tree, TreeError> {
        validate(&nodes)?;
        if trained >= 1 << LossClass::ALL.len() {
            return Err(TreeError::Format);
        }
        Ok(Tree { version, trained, nodes })
    }

    /// The class of a vector.
    pub fn classify(&self, vector: &Vector) -> LossClass {
        let mut at = 0;
        loop {
            match self.nodes[at] {
                Node::Leaf(class) => return class,
                Node::Split { feature, threshold, left, right, missing_left } => {
                    let value = vector[usize::from(feature)];
                    let goes_left = if value.is_nan() { missing_left } else { value <= threshold };
                    at = usize::from(if goes_left { left } else { right });
                }
            }
        }
    }

    /// Counts up from one training to the next.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many classes its training saw.
    pub fn classes(&self) -> u32 {
        self.trained.count_ones()
    }

    /// Its nodes, the root first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Its bytes: magic and format, [`SCHEMA`], version, classes, number of nodes; then the nodes, [`NODE_LEN`] each; all big-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN + NODE_LEN * self.nodes.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&SCHEMA.to_be_bytes());
        out.extend_from_slice(&self.version.to_be_bytes());
        out.push(self.trained);
        out.extend_from_slice(&(self.nodes.len() as u16).to_be_bytes());
        for node in &self.nodes {
            match *node {
                Node::Leaf(class) => out.extend_from_slice(&[LEAF, class as u8, 0, 0, 0, 0, 0, 0, 0, 0]),
                Node::Split { feature, threshold, left, right, missing_left } => {
                    out.extend_from_slice(&[feature, u8::from(missing_left)]);
                    out.extend_from_slice(&threshold.to_be_bytes());
                    out.extend_from_slice(&left.to_be_bytes());
                    out.extend_from_slice(&right.to_be_bytes());
                }
            }
        }
        out
    }

    /// The tree that these bytes are.
    ///
    /// # Errors
    /// See [`TreeError`]. Bytes that are understood are those that [`Tree::encode`] writes.
    pub fn decode(bytes: &[u8]) -> Result<Tree, TreeError> {
        let length = || TreeError::Length(bytes.len());
        let (magic, rest) = bytes.split_first_chunk().ok_or_else(length)?;
        if *magic != MAGIC {
            return Err(TreeError::Format);
        }
        let (schema, rest) = rest.split_first_chunk().ok_or_else(length)?;
        let schema = u64::from_be_bytes(*schema);
        if schema != SCHEMA {
            return Err(TreeError::Schema(schema));
        }
        let (version, rest) = rest.split_first_chunk().ok_or_else(length)?;
        let (trained, rest) = rest.split_first().ok_or_else(length)?;
        let (count, rest) = rest.split_first_chunk().ok_or_else(length)?;
        let (nodes, behind) = rest.as_chunks::<NODE_LEN>();
        if !behind.is_empty() || nodes.len() != usize::from(u16::from_be_bytes(*count)) {
            return Err(length());
        }
        let node = |(at, bytes)| read_node(bytes).ok_or(TreeError::Node(at));
        let nodes = nodes.iter().enumerate().map(node).collect::<Result<_, _>>()?;
        Tree::new(u64::from_be_bytes(*version), *trained, nodes)
    }
}

/// "OAL", and the number of the format.
const MAGIC: [u8; 4] = *b"OAL\x01";
const HEADER_LEN: usize = 4 + 8 + 8 + 1 + 2;
/// Octets of a node.
pub const NODE_LEN: usize = 10;
/// In place of a feature.
const LEAF: u8 = 0xff;

fn read_node(bytes: &[u8; NODE_LEN]) -> Option<Node> {
    let [feature, second, rest @ ..] = *bytes;
    let [t0, t1, t2, t3, l0, l1, r0, r1] = rest;
    match (feature, second) {
        (LEAF, class) if rest == [0; 8] => Some(Node::Leaf(*LossClass::ALL.get(usize::from(class))?)),
        (LEAF, _) => None,
        (feature, 0 | 1) => Some(Node::Split {
            feature,
            threshold: f32::from_be_bytes([t0, t1, t2, t3]),
            left: u16::from_be_bytes([l0, l1]),
            right: u16::from_be_bytes([r0, r1]),
            missing_left: second == 1,
        }),
        _ => None,
    }
}

/// Children behind their parents, each node with one, and so neither circles nor shared ways; nothing out of range.
fn validate(nodes: &[Node]) -> Result<(), TreeError> {
    if nodes.is_empty() || nodes.len() > usize::from(u16::MAX) {
        return Err(TreeError::Length(nodes.len()));
    }
    let mut depths: Vec<Option<u32>> = vec![None; nodes.len()];
    depths[0] = Some(0);
    for (at, node) in nodes.iter().enumerate() {
        let depth = depths[at].ok_or(TreeError::Parent(at))?;
        if depth > DEPTH_MAX {
            return Err(TreeError::Depth(at));
        }
        let Node::Split { feature, threshold, left, right, .. } = *node else { continue };
        if usize::from(feature) >= FEATURES.len() || !threshold.is_finite() {
            return Err(TreeError::Node(at));
        }
        for child in [left, right].map(usize::from) {
            if child <= at {
                return Err(TreeError::Node(at));
            }
            match depths.get_mut(child) {
                Some(unset @ None) => *unset = Some(depth + 1),
                Some(Some(_)) => return Err(TreeError::Parent(child)),
                None => return Err(TreeError::Node(at)),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(left: u16, right: u16) -> Node {
        Node::Split { feature: 1, threshold: 5.0, left, right, missing_left: false }
    }

    const GOOD: Node = Node::Leaf(LossClass::Good);
    const BAD: Node = Node::Leaf(LossClass::Bad);

    #[test]
    fn up_to_the_threshold_is_left_and_missing_goes_with_most() {
        let tree = Tree::new(1, 0b1001, vec![split(1, 2), GOOD, BAD]).expect("valid");
        let of = |value: f32| {
            let mut vector = [0.0; FEATURES.len()];
            vector[1] = value;
            tree.classify(&vector)
        };
        assert_eq!([of(4.0), of(5.0)], [LossClass::Good; 2]);
        assert_eq!([of(5.1), of(f32::INFINITY), of(f32::NAN)], [LossClass::Bad; 3]);
        assert_eq!(tree.classes(), 2);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let of = |nodes: &[Node]| Tree::new(1, 1, nodes.to_vec()).map(|_| ());
        assert_eq!(of(&[]), Err(TreeError::Length(0)));
        assert_eq!(of(&[split(0, 1), GOOD]), Err(TreeError::Node(0)), "a circle");
        assert_eq!(of(&[split(1, 1), GOOD]), Err(TreeError::Parent(1)), "two ways to one node");
        assert_eq!(of(&[split(1, 2), GOOD]), Err(TreeError::Node(0)), "out of range");
        assert_eq!(of(&[GOOD, GOOD]), Err(TreeError::Parent(1)), "no way to a node");
        let odd = |feature, threshold| Node::Split { feature, threshold, left: 1, right: 2, missing_left: true };
        assert_eq!(of(&[odd(16, 0.0), GOOD, GOOD]), Err(TreeError::Node(0)));
        assert_eq!(of(&[odd(0, f32::NAN), GOOD, GOOD]), Err(TreeError::Node(0)));
        // A chain: each split's left child is a leaf, its right child the next split.
        let chain = |splits: u16| {
            let links = (0..splits).flat_map(|n| [split(2 * n + 1, 2 * n + 2), GOOD]);
            links.chain([BAD]).collect::<Vec<_>>()
        };
        assert_eq!(of(&chain(32)), Ok(()));
        assert_eq!(of(&chain(33)), Err(TreeError::Depth(65)));
    }

    #[test]
    fn bytes_of_another_list_of_features_are_refused() {
        let tree = Tree::new(7, 0b1001, vec![split(1, 2), GOOD, BAD]).expect("valid");
        let mut bytes = tree.encode();
        assert_eq!(Tree::decode(&bytes), Ok(tree));
        assert_eq!(Tree::decode(&bytes[..bytes.len() - 1]), Err(TreeError::Length(bytes.len() - 1)));
        bytes[11] ^= 1;
        assert_eq!(Tree::decode(&bytes), Err(TreeError::Schema(SCHEMA ^ 1)));
        bytes[3] = 2;
        assert_eq!(Tree::decode(&bytes), Err(TreeError::Format));
    }
}
