"""The texts, images and stories this project uses."""

from pathlib import Path

from sepnb.data import containers, simulated
from sepnb.data.dataset import DataDamaged, DataMissing, DataSet, Part
from sepnb.validation import named

__all__ = ["DataDamaged", "DataMissing", "DataSet", "Part", "get", "names"]


def _novels() -> tuple[Part, ...]:
    rows = Path(__file__).with_name("eltec-eng.tsv").read_text(encoding="utf-8").splitlines()[1:]
    fields = (row.split("\t") for row in rows)
    return tuple(Part(name, int(size), sha256, split, author) for name, split, author, size, sha256 in fields)


def _parts(rows: str) -> tuple[Part, ...]:
    fields = (row.split() for row in rows.strip().splitlines())
    return tuple(Part(name, int(size), sha256, split) for name, size, sha256, split in fields)


_WIKITEXT = """
wiki.train.tokens 10797148 9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f train
wiki.valid.tokens 1121681 f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8 validation
wiki.test.tokens 1256449 d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0 test
"""
_FASHION = """
train-images-idx3-ubyte 47040016 c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888 train
train-labels-idx1-ubyte 60008 bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9 train
t10k-images-idx3-ubyte 7840016 5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b test
t10k-labels-idx1-ubyte 10008 0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34 test
"""
_BABI = """
en-10k/qa1_single-supporting-fact_train.txt 944248 749ea9f7c99070feb2d88c975a254417a0dcc8274add4435ae5ae24c7afc7e9d train
en-10k/qa2_two-supporting-facts_train.txt 1794716 d4074c0c5d54f70ce2f538056ce2b6ef6a313da336da4245f1a24f1298e37ef3 train
en/qa3_three-supporting-facts_train.txt 529204 a6e78019f36a02a7ed71fe6aaded0b563ff09c8deec392931801fcd9c6af4d60 train
en/qa1_single-supporting-fact_test.txt 94477 55acf66cef2f6d798e2aa1d056e1ec8f24e910ea9215b639450574321132959b test
en/qa2_two-supporting-facts_test.txt 179835 eff93fb9cd81ba02eb765772cf7cc269769ed44ec71cbbbc19cfb16ee5eba0f6 test
en/qa3_three-supporting-facts_test.txt 526527 17795c977100baf8188f386522ae301b62d6c1a13efc01b3aea781e588b4d57f test
"""  # noqa: E501

_SETS = (
    DataSet(
        name="sympy",
        title=f"Python sources of sympy {containers.SYMPY_VERSION}, sixteen packages of its mathematics",
        sha256="29ad4432eb8a242b7252a131d90b4f6ff03314a8b15e0af999fe659d4dbecee5",
        licence="BSD-3-Clause (SymPy Development Team)",
        source=f"installed with this project: sympy=={containers.SYMPY_VERSION} of requirements.lock",
        note="The offline default. The hash is that of the files of the release on the Python Package Index.",
        decode=containers.sympy_sources,
    ),
    DataSet(
        name="eltec-eng",
        title="ELTeC-eng, 99 English novels first published from 1840 to 1920",
        sha256="116f1d0de2355348bb018228d5c1bcde31ffa009ab942b8735f0793126a7dc68",
        licence="texts in the public domain; markup CC BY 4.0 (COST Action CA16204)",
        source="https://github.com/COST-ELTeC/ELTeC-eng, DOI 10.5281/zenodo.3462435",
        note=(
            "The owner publishes TEI files and no checksum of their text, so the owner's bytes are not "
            "verified: the hashes are those of the plain text of the bodies at commit 3db3b67, one paragraph "
            "a line, and a download is compared with them novel by novel. ENG18460_Reynolds is left out."
        ),
        decode=containers.eltec_archive,
        parts=_novels(),
        addresses=(
            "https://github.com/COST-ELTeC/ELTeC-eng/archive/3db3b6738a836f0e1b276b6c9703e42f4297f978.zip",
        ),
        unpack=containers.eltec_zip,
    ),
    DataSet(
        name="wikitext-2",
        title="WikiText-2, 720 good and featured articles of the English Wikipedia, tokenised by words",
        sha256="1be73e804b3920ba346c657b160c59b62cfff11fcb4ee9757457d481065e1afe",
        licence="CC BY-SA 3.0 and GFDL (Wikipedia's authors; Merity et al. 2017)",
        source="Merity et al., Pointer Sentinel Mixture Models (2017), wikitext-2-v1.zip",
        note="The hashes are those of the three token files in the owner's archive.",
        decode=containers.wikitext_files,
        parts=_parts(_WIKITEXT),
        addresses=(
            "https://wikitext.smerity.com/wikitext-2-v1.zip",  # the first author's own copy
            "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",  # often refuses
        ),
        unpack=containers.wikitext_zip,
    ),
    DataSet(
        name="digits",
        title="1,797 handwritten digits of 8 x 8 pixels, by 13 writers",
        sha256="06e711d56cfa1e37740c09f9c21be75c30654fb13b785a2b60187039bb76c3af",
        licence="CC BY 4.0 (Alpaydin and Kaynak 1998, UCI Machine Learning Repository)",
        source="the file that scikit-learn 1.9.1 distributes (sklearn/datasets/data/digits.csv.gz)",
        note=(
            "The offline default of images: it comes with a locked dependency. It is the test set of the "
            "Optical Recognition of Handwritten Digits."
        ),
        decode=containers.scikit_learn_digits,
        kind="images",
    ),
    DataSet(
        name="fashion-mnist",
        title="Fashion-MNIST, 70,000 photographs of clothes in ten classes, grey, 28 x 28 pixels",
        sha256="5efef016f12bd376f0d87c722624b5ba355aa3184992c5f7c7c33e72d03157b1",
        licence="MIT (Zalando SE)",
        source="https://github.com/zalandoresearch/fashion-mnist (Xiao, Rasul and Vollgraf 2017)",
        note=(
            "The owner publishes MD5 sums of the four packed files, and the bytes that these hashes describe "
            "came out of files that have them."
        ),
        decode=containers.fashion_files,
        parts=_parts(_FASHION),
        addresses=(
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
            "b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",  # which speaks no https
        ),
        unpack=containers.gzip_file,
        kind="images",
        files=containers.FASHION_FILES,
    ),
    DataSet(
        name="simulated-stories",
        title="stories with questions in the form of bAbI, tasks 1 to 3, from a simulation",
        sha256="7dd56c6c8f83a1a4a17caeeb85805cfc08c001f98bb7cc2f2d063a65c48185ae",
        licence="Apache-2.0 (this project)",
        source="written by sepnb.data.simulated",
        note="The offline default of questions: it is made when it is read, and its hash is asserted.",
        decode=simulated.stories,
        kind="stories",
    ),
    DataSet(
        name="babi",
        title="bAbI, tasks 1 to 3: stories with questions that one, two or three statements answer",
        sha256="e7e2464cc709fc145545413ec7676472b9f02025aac7d4be6dfd33e7a8fd9261",
        licence="CC BY 3.0 (Facebook, Inc. 2015)",
        source="Weston et al., Towards AI-Complete Question Answering (2015), tasks_1-20_v1-2.tar.gz",
        note=(
            "The owner publishes no checksum, so the owner's bytes are not verified. The training questions "
            "of tasks 1 and 2 are the owner's 10,000, those of task 3 the owner's 1,000."
        ),
        decode=containers.babi_archive,
        parts=_parts(_BABI),
        addresses=(
            "https://s3.amazonaws.com/text-datasets/babi_tasks_1-20_v1-2.tar.gz",
            # the first author's own copy
            "http://www.thespermwhale.com/jaseweston/babi/tasks_1-20_v1-2.tar.gz",
        ),
        unpack=containers.babi_tar,
        kind="stories",
    ),
)
_LOADERS = {"text": "text", "images": "images", "stories": "babi"}
_BY_NAME = {data_set.name: data_set for data_set in _SETS}


def names(kind: str | None = None) -> list[str]:
    """Names of the registered data sets; of one kind, "text", "images" or "stories", if it is given."""
    return [name for name, data_set in _BY_NAME.items() if kind in (None, data_set.kind)]


def get(name: str, kind: str | None = None) -> DataSet:
    """The data set of that name, which is of the kind, if one is given.

    Raises:
        ValueError: an unknown name, answered with the near matches; a set of another kind.
    """
    found = named("data set", name, _BY_NAME)
    if kind not in (None, found.kind):
        there = f"see sepnb.data.{_LOADERS[found.kind]}.load; sets of {kind} are {', '.join(names(kind))}"
        raise ValueError(f"{name} holds {found.kind}, {there}")
    return found
